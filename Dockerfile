# The container image: Debian with git and ripgrep, a user who is not root, and tini as PID 1, which
# forwards signals and reaps. "make image" builds it from the binary of "make release".
ARG BASE=docker.io/library/debian:bookworm-slim
FROM ${BASE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates git ripgrep tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home inspan \
 && install -d -o inspan -g inspan /work
ARG TARGETARCH
COPY dist/build/linux_${TARGETARCH}/inspan /usr/local/bin/inspan
COPY LICENSE NOTICE /usr/share/doc/inspan/
USER 10001:10001
ENV HOME=/home/inspan
WORKDIR /work
ENTRYPOINT ["/usr/bin/tini", "--", "inspan"]
CMD ["--help"]
