package mcpserver

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// Extend has a server offer more than the product does, in the same way.
func (s *Server) Extend(prepare func(*sdk.ServerOptions), extend func(*sdk.Server)) {
	s.prepare, s.extend = prepare, extend
}
