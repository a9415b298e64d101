# The API and the worker, for production: the same image, another command. See docker-compose.yml.
FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The pinned Node of package.json is for machines that have none: the image brings its own.
RUN npm ci --omit=dev && rm -rf node_modules/node-linux-* node_modules/.bin/node

FROM node:24-bookworm-slim
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
