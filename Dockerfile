# The API and the worker, for production: the same image, another command. See docker-compose.yml. `--target host` is
# that image with what computers need, and with what they find in /usr. `--target storage` is the object store alone.
FROM golang:1.25-alpine AS programs
WORKDIR /source
COPY stack/store store
RUN cd store && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /atrium-store .
COPY integrations/computers/agent agent
RUN cd agent && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /atrium-agent .
COPY integrations/computers/drivefs drivefs
RUN cd drivefs && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /atrium-drivefs .

FROM alpine:3.22 AS storage
COPY --from=programs /atrium-store /usr/local/bin/
VOLUME /objects
EXPOSE 7070
ENTRYPOINT ["atrium-store"]

FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The pinned Node of package.json is for machines that have none: the image brings its own.
RUN npm ci --omit=dev && rm -rf node_modules/node-linux-* node_modules/.bin/node

FROM node:24-bookworm-slim AS product
WORKDIR /app
# Repositories are cloned with it.
RUN apt-get update && apt-get install --yes --no-install-recommends git ca-certificates && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production ATRIUM_ENV=production ATRIUM_HOST=0.0.0.0 ATRIUM_DATA_DIR=/data
COPY --from=dependencies /app/node_modules node_modules
# .dockerignore lists what there is to copy.
COPY . .
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["node", "bin/atrium.ts"]
CMD ["api"]

FROM product AS host
USER root
COPY --from=programs /atrium-agent /atrium-drivefs /usr/local/bin/
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates curl ffmpeg fonts-dejavu-core git jq less openbox openssh-client perl procps python3 python3-pip python3-venv tigervnc-standalone-server unzip vim-tiny x11-xkb-utils x11-xserver-utils xclip xkb-data xterm \
 && rm -rf /var/lib/apt/lists/*
USER node
CMD ["worker"]

# The last is what is built where none is named.
FROM product
