package git

import "net"

// Policy says what may be called.
type Policy struct {
	// Files allows repositories on the server's own disk. Whoever may name a URL then reads every repository that the server can read.
	Files bool
	// PlainHTTP allows URLs with http, CredentialsInClear that credentials are sent over it.
	PlainHTTP, CredentialsInClear bool
	// Allow reports whether an address may be called; nil stands for outbound.Reachable. It is asked about the address itself when the
	// connection is made, so that no name can lead around it.
	Allow func(net.IP) bool
}
