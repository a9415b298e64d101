# What computers are made of with the driver "docker" (docs/computers.md):
#   docker build -t atrium-computer -f computer.Dockerfile .
# Add what your people and agents need. Any image with glibc does on Linux, for there the host brings its own Node.
FROM node:24-bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates chromium curl ffmpeg fontconfig fonts-dejavu-core fonts-liberation fonts-noto-color-emoji fonts-wqy-zenhei git jq less openbox openssh-client perl procps python3 python3-pip python3-venv tigervnc-standalone-server unzip vim-tiny x11-xkb-utils x11-xserver-utils xclip xkb-data xterm \
 && rm -rf /var/lib/apt/lists/*
# Where the host is another system, the agent runs on this Node, and has its terminals by this module.
COPY package.json package-lock.json .npmrc /tmp/atrium/
RUN cd /tmp/atrium && npm ci --omit=dev --ignore-scripts \
 && mkdir /opt/atrium && touch /opt/atrium/agent.cjs && ln -s /usr/local/bin/node /opt/atrium/node \
 && cp node_modules/@lydell/node-pty-linux-*/pty.node /opt/atrium/ \
 && rm -rf /tmp/atrium /root/.npm \
 && mkdir -p /home/user
