# Build: the executable, with the toolchain that package-lock.json pins.
FROM node:24-bookworm-slim AS build
# binutils has `strip`: an executable 33 MB smaller. The pinned Node needs libatomic1.
RUN apt-get update \
  && apt-get install -y --no-install-recommends binutils ca-certificates libatomic1 \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN npm run build -- --chunks

# Run: the executable and what an agent's shell needs.
FROM debian:bookworm-slim AS server
RUN apt-get update \
  && apt-get install -y --no-install-recommends bash bubblewrap ca-certificates git libatomic1 libstdc++6 procps ripgrep tini \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --create-home --uid 1000 --shell /bin/bash agent \
  && install --directory --owner=agent --group=agent --mode=0700 /data /shared
# bubblewrap works only in containers that may create namespaces, and most may not: docs/isolation.md.
# So the executable is not readable by the user it runs as either: the kernel then hides its memory and environment from
# that user's other processes, the agent's commands among them.
COPY --from=build --chown=root:root --chmod=0711 /src/dist/agent-server /usr/local/bin/agent-server
# Its code, which it cannot read from itself then.
COPY --from=build --chown=root:root --chmod=0444 /src/dist/agent-server.chunks /usr/local/bin/agent-server.chunks
USER agent
WORKDIR /home/agent
ENV OPENHANDS_DATA_DIR=/data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${OPENHANDS_SERVER_PORT:-8000} && printf 'GET /alive HTTP/1.0\\r\\n\\r\\n' >&3 && read -r status <&3 && [[ $status == *' 200 '* ]]"]
# tini reaps the processes that an agent's commands leave behind; the server waits only for its own.
ENTRYPOINT ["tini", "--", "agent-server"]
CMD ["serve"]

# Tools, with --target tools: Python and Node for the agents as well. An image of your own begins like this stage, with the tag
# of the server instead of `server`: docs/install.md.
FROM server AS tools
USER root
RUN apt-get update \
  && apt-get install -y --no-install-recommends python3 python3-pip python3-venv \
  && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local/bin/node /usr/local/bin/
COPY --from=build /usr/local/lib/node_modules/npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
  && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
USER agent

# The default.
FROM server
