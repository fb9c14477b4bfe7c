package reach

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// suffix ends the host names that stand for pods. Nobody can have a name under .invalid.
const suffix = ".pod.manifold.invalid"

// podPort is a port of a pod. The UID is part of its address, so that a connection to a pod is never used for its successor.
type podPort struct {
	namespace, name string
	uid             types.UID
	port            int32
}

// String is the address: NAME.NAMESPACE.UID.pod.manifold.invalid:PORT. Of the three, a name alone may have dots.
func (p podPort) String() string {
	return net.JoinHostPort(p.name+"."+p.namespace+"."+string(p.uid)+suffix, strconv.Itoa(int(p.port)))
}

// parse is the opposite of String. It returns false for the address of anything else.
func parse(address string) (podPort, bool) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return podPort{}, false
	}
	host, ours := strings.CutSuffix(host, suffix)
	if !ours {
		return podPort{}, false
	}
	host, uid, ok := cutLast(host)
	if !ok {
		return podPort{}, false
	}
	name, namespace, ok := cutLast(host)
	if !ok {
		return podPort{}, false
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return podPort{}, false
	}
	return podPort{namespace: namespace, name: name, uid: types.UID(uid), port: int32(port)}, true
}

func cutLast(host string) (before, last string, ok bool) {
	i := strings.LastIndexByte(host, '.')
	if i < 0 {
		return "", "", false
	}
	return host[:i], host[i+1:], true
}

// describe names the port for people.
func (p podPort) describe(cluster string) string {
	return fmt.Sprintf("port %d of pod %s/%s in cluster %q", p.port, p.namespace, p.name, cluster)
}
