//go:build !unix

package role

// nonblock is nothing where no file of a folder makes open wait.
const nonblock = 0
