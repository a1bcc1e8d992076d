from gavel import Gavel

def work(leadership):
    while not leadership.wait(0.1):                 # True: stop now
        print("write with", leadership.require())   # before each effect
        break                                       # its own end gives leadership away

Gavel().run(work)
