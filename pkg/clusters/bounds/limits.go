// Package bounds keeps a cluster from filling the memory of the server: what it sends is counted while it is read, and what is kept of it is
// counted as long as it is kept. An honest cluster comes nowhere near; one that goes beyond is told of and left alone, and no other waits
// for it.
package bounds

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// mostObject bounds an answer about one object. etcd takes 1.5 MiB, which JSON makes somewhat longer.
	mostObject = 8 << 20
	// mostList bounds one list or page of a list. A page of 500 pods has 5 MiB, the usage of 20,000 pods 10 MiB.
	mostList = 32 << 20
	// mostDiscovery bounds a document that tells what is served. Thousands of kinds have 2 MiB.
	mostDiscovery = 16 << 20
	// mostError bounds what comes with a refusal.
	mostError = 1 << 20
	// mostEvent bounds one event of a watch, which holds one object.
	mostEvent = 4 << 20
	// deepest is how deep JSON may be nested, of which projection.DeepestContent leaves some to what holds an object. Definitions of custom resources have
	// some dozens of levels.
	deepest = 500

	// watchRate and watchBurst pace what the lists and watches of one cluster carry: the burst is the first look at 20,000 pods, the rate is
	// 2,000 changes of pods a second, more than a server of one process shows.
	watchRate  rate.Limit = 16 << 20
	watchBurst            = 256 << 20
	// chunk is how much is read at a time.
	chunk = 64 << 10

	// bigRead is where an answer begins to be big. readsAtOnce are the big ones of all clusters together, readsOfOne those of one cluster,
	// and readTime is how long one may take from there, so that a slow cluster gives way to others.
	bigRead     = 4 << 20
	readsAtOnce = 12
	readsOfOne  = 2
	readTime    = time.Minute

	// mostHeaders bounds the headers of an answer.
	mostHeaders = 256 << 10
	// streamWindow is how much of one answer arrives before it is read, connectionWindow of all that share a connection. The second is
	// far beyond what a hundred streams may have, so that none waits for the reader of another.
	streamWindow     = 512 << 10
	connectionWindow = 128 << 20
)

// ExceededError tells that a cluster sends or holds more than is taken from it.
type ExceededError struct {
	// What it is, in words that follow "it sends" or the like.
	What string
	// Do is what helps.
	Do string
}

// Error implements error.
func (e *ExceededError) Error() string { return e.What + "; " + e.Do }

const lookInto = "a healthy cluster does not do that: check what answers at its address"

func tooMuch(what string, most int64) error {
	return &ExceededError{What: fmt.Sprintf("the cluster sends %s of more than %s", what, inWords(most)), Do: lookInto}
}

func inWords(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// Beneath has the transport that lies beneath another one bound headers, and what arrives before it is read. It must not have been used.
func Beneath(over http.RoundTripper) error {
	for {
		switch t := over.(type) {
		case *http.Transport:
			t.MaxResponseHeaderBytes = mostHeaders
			t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connectionWindow}
			return nil
		case utilnet.RoundTripperWrapper:
			over = t.WrappedRoundTripper()
		default:
			return fmt.Errorf("bound what comes over a transport: %T is not known", over)
		}
	}
}

// answer is the kind of an answer.
type answer int

const (
	object answer = iota
	list
	discovery
	watching
)

var kinds = map[answer]struct {
	what string
	most int64
}{
	object:    {"an answer about one object", mostObject},
	list:      {"a list, or a page of one,", mostList},
	discovery: {"a list of what it serves", mostDiscovery},
}

// answerTo tells what a request asks for. base is the path that the API server is served under.
func answerTo(r *http.Request, base string) answer {
	if watch := r.URL.Query().Get("watch"); watch != "" && watch != "false" && watch != "0" {
		return watching
	}
	_, parts := asked(r, base)
	switch {
	case len(parts) == 0:
		return discovery
	case len(parts) == 1 && r.Method != http.MethodPost:
		return list
	}
	return object
}

// resourceIn names the resource that a request asks for, with its group.
func resourceIn(r *http.Request, base string) string {
	group, parts := asked(r, base)
	if len(parts) == 0 {
		return "objects"
	}
	return schema.GroupResource{Group: group, Resource: parts[0]}.String()
}

// asked returns the group that a request asks for, and what follows in its path from the resource on, nothing for one that asks what is served.
func asked(r *http.Request, base string) (group string, parts []string) {
	parts = strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, strings.TrimSuffix(base, "/")), "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = parts[1], parts[3:]
	default:
		return "", nil
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return group, parts
}
