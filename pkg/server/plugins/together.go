package plugins

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/calls"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/fetch"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/host"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/live"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/planning"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/process"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/services"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/sources"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git"
)

// Needs are what plugins are run with.
type Needs struct {
	Informers externalversions.SharedInformerFactory
	// Client keeps what plugins ask to be kept, as the identity of their services.
	Client versioned.Interface
	Logs   services.Logs
	// Repositories are fetched from, by what Request says of an application.
	Repositories *git.Client
	Request      func(app *v1alpha1.Application) (git.Request, error)
	// Objects returns what a revision holds for a target.
	Objects func(namespace, revision, target string) ([]*unstructured.Unstructured, error)
	Queues  work.Names
}

// Part is something that runs until its context ends.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// Running is what delivery asks of plugins.
type Running struct {
	Host     *host.Host
	Calls    *calls.Calls
	Planning *planning.Room
	Live     *live.Board
	Parts    []Part
}

// flight knows the calls in flight. They need the host, which needs the services, which ask for them.
type flight struct{ *calls.Calls }

// InFlight implements services.Calls.
func (f *flight) InFlight(release types.UID, stage string) (calls.InFlight, bool) {
	return f.Calls.InFlight(release, stage)
}

// New makes what runs plugins, asks them, and answers them. The folder is locked from then on.
func (p *Options) New(n Needs) (*Running, error) {
	out, err := p.together(n)
	if err != nil {
		return nil, fmt.Errorf("--plugins-dir: %w", err)
	}
	return out, nil
}

func (p *Options) together(n Needs) (_ *Running, err error) {
	root := os.Geteuid() == 0
	dir, lock, err := openDir(p.Dir, root)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	var users *process.Users
	if root {
		users = &process.Users{First: p.first, Last: p.last, Homes: filepath.Join(dir, "homes")}
	}
	programs, err := fetch.New(filepath.Join(dir, "programs"), fetch.Options{})
	if err != nil {
		return nil, err
	}
	in, of := &flight{}, (*host.Host)(nil) // the services need both, and are there first
	tools := &host.Tools{}
	answers, err := services.New(services.Options{
		Informers: n.Informers, Client: n.Client, Calls: in, Logs: n.Logs, Tools: services.Tools{Dir: filepath.Join(dir, "tools"), Install: tools},
		User:   func(plugin string) (uint32, bool) { return of.User(plugin) },
		Called: func(plugin string) string { return of.Called(plugin) },
	})
	if err != nil {
		return nil, err
	}
	of = host.New(host.Options{Dir: dir, Programs: programs, Services: answers, Users: users, Clock: clock.RealClock{}})
	tools.Host = of
	if err := of.Prepare(); err != nil {
		return nil, err
	}
	files, err := sources.New(sources.Options{
		Dir: filepath.Join(dir, "sources"), Request: n.Request, Objects: n.Objects,
		Fetch: func(ctx context.Context, request git.Request, revision git.Revision) (sources.Checkout, error) {
			checkout, err := n.Repositories.Fetch(ctx, request, revision)
			if err != nil {
				return nil, err
			}
			return checkout, nil
		},
		Called: of.Called,
		Owner: func(plugin string) (uid, gid int, other bool) {
			id, other := of.User(plugin)
			return int(id), int(id), other
		},
	})
	if err != nil {
		return nil, err
	}
	in.Calls = calls.New(calls.Options{Plugins: of, Sources: files})
	board, err := live.New(live.Options{
		Applications: n.Informers.Delivery().V1alpha1().Applications(), Revisions: n.Informers.Delivery().V1alpha1().ApplicationRevisions(),
		Directory: of, Sources: files, Queues: n.Queues,
	})
	if err != nil {
		return nil, err
	}
	room := planning.NewRoom(&planning.Planner{Directory: of, Sources: files})
	return &Running{Host: of, Calls: in.Calls, Planning: room, Live: board, Parts: []Part{
		{"services for plugins", answers.Run},
		{"host of plugins", func(ctx context.Context) error {
			klog.FromContext(ctx).Info("Running plugins", "dir", dir, "usersOfTheirOwn", root)
			return errors.Join(of.Run(ctx), lock.Close())
		}},
		{"calls of plugins", in.Calls.Run},
		{"planning by plugins", room.Run},
		{"what plugins say is live", board.Run},
	}}, nil
}
