package sandbox

// Container names what commands run in instead of the walls that inspan builds
// itself: a container of its own for each, through the command line of podman
// or docker. Linux only; elsewhere nothing is started.
//
// What is in a container is the image, with the workspace at the same path.
// Nothing is ever pulled: the image must be there.
//
//   - [tool.BoxRead]: the workspace can be read; there is no network, no
//     capability and no way to get one; the root is read-only and what is
//     written to the temporary folders is gone with the container.
//   - [tool.BoxWorkspace]: the same, and the workspace can be written, but for
//     what a workspace box closes. Single hosts can't be opened.
//   - [tool.BoxNone] leaves the walls, not the image: the whole workspace can be
//     written, secrets can be read, the network is the one that the engine
//     gives to every container, and so are capabilities. What is written
//     elsewhere is gone with the container.
//
// Secrets in the workspace are covered, places that are never written are
// read-only, and what appears there is taken away, as in the boxes.
type Container struct {
	// Image is a name that the engine knows. It needs no shell of its own for
	// this package, but tools may ask for one.
	Image string
	// Engine is the path or the name of podman or docker. Empty: podman if it
	// is found, else docker.
	Engine string
}
