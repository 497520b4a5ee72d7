//go:build !unix

package skill

// nonblock is nothing where no file of a folder makes open wait.
const nonblock = 0
