# The container image: Debian with git and ripgrep, a user who is not root, and tini as PID 1, which
# forwards signals and reaps. "make image" builds it from the binary of "make release". It works with
# a read-only root if /home/inspan and /tmp can be written.
ARG BASE=docker.io/library/debian:bookworm-slim
FROM ${BASE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git ripgrep tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home inspan \
 && install -d -o inspan -g inspan /work
ARG TARGETARCH
ARG FROM=dist/build
COPY ${FROM}/linux_${TARGETARCH}/inspan /usr/local/bin/inspan
COPY LICENSE NOTICE /usr/share/doc/inspan/
COPY third_party /usr/share/doc/inspan/third_party
USER 10001:10001
ENV HOME=/home/inspan
WORKDIR /work
# The image has no curl, and needs none. A container that does not serve is healthy as long as it runs.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s CMD ["bash", "-c", "grep -qzx serve /proc/1/cmdline || exit 0; exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /ping HTTP/1.0\\r\\nHost: 127.0.0.1:8080\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["/usr/bin/tini", "--", "inspan"]
CMD ["--help"]
