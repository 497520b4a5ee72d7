//go:build !unix

package custom

// nonblock is nothing where no file of a folder makes open wait.
const nonblock = 0
