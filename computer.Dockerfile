# What computers are made of with the driver "docker" (docs/computers.md):
#   docker build -t atrium-computer -f computer.Dockerfile .
# Add what your people and agents need. Any image with a shell does.
FROM node:24-bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates chromium curl ffmpeg fontconfig fonts-dejavu-core fonts-liberation fonts-noto-color-emoji fonts-wqy-zenhei git jq less openbox openssh-client perl procps python3 python3-pip python3-venv tigervnc-standalone-server unzip vim-tiny x11-xkb-utils x11-xserver-utils xclip xkb-data xterm \
 && rm -rf /var/lib/apt/lists/*
RUN mkdir -p /home/user
