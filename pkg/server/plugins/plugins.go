// Package plugins says whether plugins run beside the server, and puts together what runs them.
package plugins

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/pkg/delivery/plugins/fetch"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/host"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/process"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/pipedservice"
)

// Options say whether plugins run beside the server, and as whom.
type Options struct {
	// Dir is the folder that they live in. Empty means that none are run.
	Dir string
	// UIDs are the numbers of the users that they run as, FIRST-LAST, where the server is root.
	UIDs string

	first, last uint32
}

// AddFlags adds the flags.
func (p *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&p.Dir, "plugins-dir", p.Dir,
		"Folder for plugins, which are programs that run beside the server, named by Plugin objects: their programs, folders and logs. Empty runs none. "+
			"One process at a time uses it.")
	fs.StringVar(&p.UIDs, "plugins-uid-range", p.UIDs,
		"Numbers of users, FIRST-LAST, of which each plugin gets one of its own. They must belong to nothing else. If the server is not root, plugins run as its own user instead.")
}

// DefaultUIDs are numbers that systems give to nobody of their own accord.
const DefaultUIDs = "59000-59999"

// lowestUID is the first one that is not for the system.
const lowestUID = 1000

// Validate refuses what cannot be, by the flag.
func (p *Options) Validate() error {
	first, last, ok := strings.Cut(p.UIDs, "-")
	from, err := strconv.ParseUint(first, 10, 32)
	to, err2 := strconv.ParseUint(last, 10, 32)
	if !ok || errors.Join(err, err2) != nil || from > to {
		return fmt.Errorf("--plugins-uid-range: %q must be FIRST-LAST, such as 59000-59999", p.UIDs)
	}
	if from < lowestUID || to == 1<<32-1 { // the last number stands for no user
		return fmt.Errorf("--plugins-uid-range: %q must be within %d-%d", p.UIDs, lowestUID, uint32(1<<32-2))
	}
	p.first, p.last = uint32(from), uint32(to)
	return nil
}

// openDir makes the folder of plugins if need be, and locks it against a second process.
func openDir(path string, passable bool) (string, *os.File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(path, 0o711); err != nil {
		return "", nil, err
	}
	if passable {
		for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
			info, err := os.Stat(folder)
			if err != nil {
				return "", nil, err
			}
			if info.Mode().Perm()&0o001 == 0 {
				return "", nil, fmt.Errorf("the users of plugins cannot pass through %s, which leads to it: choose another folder, or chmod o+x %s", folder, folder)
			}
			if folder == filepath.Dir(folder) {
				break
			}
		}
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%s is in use by another manifold: stop that one or choose another folder", path)
		}
		return "", nil, errors.Join(err, lock.Close())
	}
	return path, lock, nil
}

// unserved is an address at which no call of a plugin is implemented.
type unserved string

// Address implements host.Services.
func (u unserved) Address(string) (string, error) { return string(u), nil }

// Close implements host.Services.
func (unserved) Close(string) {}

// Part is something that runs until its context ends.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// New makes what runs plugins, whose calls the services answer; where there are none, plugins are told that no call is implemented. The folder is locked from then on.
func (p *Options) New(services host.Services) (*host.Host, []Part, error) {
	of, parts, err := p.newHost(services)
	if err != nil {
		return nil, nil, fmt.Errorf("--plugins-dir: %w", err)
	}
	return of, parts, nil
}

func (p *Options) newHost(services host.Services) (_ *host.Host, parts []Part, err error) {
	root := os.Geteuid() == 0
	dir, lock, err := openDir(p.Dir, root)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	programs, err := fetch.New(filepath.Join(dir, "programs"), fetch.Options{})
	if err != nil {
		return nil, nil, err
	}
	o := host.Options{Dir: dir, Programs: programs, Services: services, Clock: clock.RealClock{}}
	if root {
		o.Users = &process.Users{First: p.first, Last: p.last, Homes: filepath.Join(dir, "homes")}
	}
	if services == nil {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		o.Services, parts = unserved(listener.Addr().String()), []Part{{"services for plugins", unimplemented(listener)}}
	}
	of := host.New(o)
	if err := of.Prepare(); err != nil {
		return nil, nil, err
	}
	return of, append(parts, Part{"host of plugins", func(ctx context.Context) error {
		klog.FromContext(ctx).Info("Running plugins", "dir", dir, "usersOfTheirOwn", root)
		return errors.Join(of.Run(ctx), lock.Close())
	}}), nil
}

// unimplemented answers plugins, which dial before they answer themselves, that no call is implemented.
func unimplemented(listener net.Listener) func(context.Context) error {
	server := grpc.NewServer()
	pipedservice.RegisterPluginServiceServer(server, pipedservice.UnimplementedPluginServiceServer{})
	return func(ctx context.Context) error {
		defer context.AfterFunc(ctx, server.Stop)()
		return server.Serve(listener)
	}
}
