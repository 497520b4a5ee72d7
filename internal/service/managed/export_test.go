package managed

// Endpoints are all endpoints of this door, as METHOD PATH.
func Endpoints() (out []string) {
	for _, e := range endpoints(nil) {
		out = append(out, e.method+" /v1/"+e.path)
	}
	return out
}
