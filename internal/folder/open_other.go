//go:build !unix

package folder

// nonblock is nothing where no file of a folder makes open wait.
const nonblock = 0
