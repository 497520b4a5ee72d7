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
		for at := from; from-at < 64 && isSpace(s.at(from)); {
			from++
		}
		if c := s.at(from); c != '"' && c != '\'' {
			return Found{}, false
		}
		begin, end, ok := s.argumentWord(from)
		if !ok {
			return Found{}, false
		}
		from = end + 1
		for at := from; from-at < 64 && isSpace(s.at(from)); {
			from++
		}
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
