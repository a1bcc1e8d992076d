. ./gavel.sh

if token=$(gavel_token); then
    echo "write with $token"
fi
