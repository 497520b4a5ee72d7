package sandbox

// Container configures containers instead of inspan's own sandbox: each command runs in its own container,
// started with the command line of podman or docker. Linux only; on other platforms nothing is started.
//
// A container contains the image, with the workspace at the same path. Images are never pulled: they must
// exist.
//
//   - [tool.BoxRead]: the workspace is readable; there is no network, no capability and no way to gain one; the root is read-only, and content of the temporary folders is gone with the container.
//   - [tool.BoxWorkspace]: the same, and the workspace is writable, except places that a workspace box closes. Single hosts can't be opened.
//   - [tool.BoxNone] removes the restrictions, not the image: the whole workspace is writable, secrets are readable, and network and capabilities are the engine's defaults. Changes elsewhere are gone with the container.
//
// Secrets in the workspace are hidden, protected places are read-only, and new sensitive places are moved away,
// as in boxes.
type Container struct {
	// Image is a name that the engine knows. This package needs no shell in it, but tools may use one.
	Image string
	// Engine is the path or the name of podman or docker. Empty means podman if found, otherwise docker.
	Engine string
}
