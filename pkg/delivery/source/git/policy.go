package git

import "net"

// Policy says what may be called.
type Policy struct {
	// Files are the folders of the server's own disk below which repositories may be read, by whoever may name a URL. Where a link leads is what counts.
	Files []string
	// PlainHTTP allows URLs with http, CredentialsInClear that credentials are sent over it.
	PlainHTTP, CredentialsInClear bool
	// Allow reports whether an address may be called; nil stands for outbound.Reachable. It is asked about the address itself when the
	// connection is made, so that no name can lead around it.
	Allow func(net.IP) bool
}
