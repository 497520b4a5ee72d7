package secret

// logins are the beginnings of calls that make a login from literals, with the password last: Credentials("realm",
// "host", "ann", "...").
func logins() (out []shape) {
	for _, call := range []string{
		"Credentials(", "UsernamePasswordCredentials(", "NetworkCredential(", "PasswordAuthentication(", "BasicAuth(", "HTTPBasicAuth(",
		"SetBasicAuth(", "setBasicAuth(", "basicAuth(", "basic_auth(", "auth=(",
	} {
		out = append(out, shape{prefix: call, what: "a password of a login", check: logged})
	}
	return out
}

// logged examines the arguments of a call that makes a login, which must all be literals.
func (s *scanner) logged(from int) (Found, bool) {
	for n := 0; n < 4; n++ {
		from = s.pastSpace(from, from+64)
		if c := s.at(from); c != '"' && c != '\'' {
			return Found{}, false
		}
		begin, end, ok := s.argumentWord(from)
		if !ok {
			return Found{}, false
		}
		from = s.pastSpace(end+1, end+1+64)
		switch s.at(from) {
		case ',':
			from++
		case ')':
			if n == 0 {
				return Found{}, false
			}
			return s.password(begin, end)
		default:
			return Found{}, false
		}
	}
	return Found{}, false
}
