//go:build !unix

package memory

// nonblock is nothing where no file of a folder makes open wait.
const nonblock = 0
