// Package outgoing says what the server may call of what users name.
package outgoing

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/manifold-dev/manifold/internal/outbound"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
)

// Options say what may be called of what users name: repositories, metrics, and whoever is to be notified.
type Options struct {
	// Networks may be called beside all addresses that are found by routing.
	Networks []string
	// PlainHTTP allows to call without TLS, without credentials.
	PlainHTTP bool
	// Files are folders below which repositories of this machine's disk may be read.
	Files []string

	networks []*net.IPNet
	// folders are where Files really are.
	folders []string
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Networks, "outbound-networks", o.Networks,
		"Networks, such as 127.0.0.0/8, in which addresses may be called that users name for repositories, metrics and notifications. "+
			"Others may be called if they are found by routing: the addresses of the server's own machine, of all its interfaces, and link-local ones are not.")
	fs.BoolVar(&o.PlainHTTP, "outbound-http", o.PlainHTTP, "Whether addresses that users name for repositories, metrics and notifications may be called over http. Credentials are not sent over it.")
	fs.StringSliceVar(&o.Files, "outbound-files", o.Files,
		"Folders of the server's own disk below which whoever may write Applications may read git repositories, by file:// URLs. None by default.")
}

// Validate refuses what cannot be, by the flag.
func (o *Options) Validate() error {
	o.networks = nil
	for _, text := range o.Networks {
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			return fmt.Errorf("--outbound-networks: %w", err)
		}
		o.networks = append(o.networks, network)
	}
	o.folders = nil
	for _, name := range o.Files {
		folder, err := realFolder(name)
		if err != nil {
			return fmt.Errorf("--outbound-files: %w", err)
		}
		o.folders = append(o.folders, folder)
	}
	return nil
}

// realFolder returns where a folder is, without links.
func realFolder(name string) (string, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", name)
	}
	return real, err
}

// allow reports whether an address may be called.
func (o *Options) allow(address net.IP) bool {
	for _, network := range o.networks {
		if network.Contains(address) {
			return true
		}
	}
	return outbound.Reachable(address)
}

// Policy is what holds for all calls.
func (o *Options) Policy() outbound.Policy {
	return outbound.Policy{PlainHTTP: o.PlainHTTP, Allow: o.allow}
}

// Git is what holds for repositories.
func (o *Options) Git() git.Policy {
	return git.Policy{Files: o.folders, PlainHTTP: o.PlainHTTP, Allow: o.allow}
}
