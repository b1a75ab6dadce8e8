"""What every test relies on: signals as a terminal gives them.

A test run started in the background or under nohup inherits ignored signals, and
would hand them on to the programs it tests.
"""

import signal

for _number, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _usual)
