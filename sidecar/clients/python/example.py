from gavel import Gavel

gavel = Gavel()          # $GAVEL_SOCKET, or /run/gavel/gavel.sock
if token := gavel.token():
    print("write with", token)
