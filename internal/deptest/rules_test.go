package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/manifold-dev/manifold"
	root   = "../.."
)

// placementRooms are the pure rooms of placement, each with what it may import of the others. The arrows run one way, from those that decide
// to the values and words that all talk in.
var placementRooms = map[string][]string{
	"pkg/placement/words":    {},
	"pkg/placement":          {"words"},
	"pkg/placement/portion":  {"."},
	"pkg/placement/move":     {"."},
	"pkg/placement/handmade": {"."},
	"pkg/placement/rules":    {".", "words"},
	"pkg/placement/stuck":    {".", "words", "rules"},
	"pkg/placement/score":    {".", "rules"},
	"pkg/placement/divide":   {".", "words", "portion", "rules", "score"},
	"pkg/placement/ordinals": {".", "words", "portion", "rules", "score", "divide"},
	"pkg/placement/decide":   {".", "words", "rules", "stuck", "score", "divide", "ordinals"},
	"pkg/placement/preempt":  {".", "words", "rules", "decide"},
	"pkg/placement/remedy":   {".", "words", "rules", "handmade"},
	"pkg/placement/build":    {"."},
}

// deliveryRooms are the pure rooms of delivery, each with what it may import of the others: from the engine to the values.
var deliveryRooms = map[string][]string{
	"pkg/delivery":                {},
	"pkg/delivery/analysis":       {"."},
	"pkg/delivery/automation":     {".", "changes", "places", "read"},
	"pkg/delivery/changes":        {},
	"pkg/delivery/contained":      {},
	"pkg/delivery/copies":         {"."},
	"pkg/delivery/drift":          {"."},
	"pkg/delivery/governed":       {"contained"},
	"pkg/delivery/insight":        {},
	"pkg/delivery/manifests":      {},
	"pkg/delivery/oam":            {"copies", "routing", "traffic"},
	"pkg/delivery/routing":        {"."},
	"pkg/delivery/traffic":        {".", "routing"},
	"pkg/delivery/variants":       {"."},
	"pkg/delivery/waves":          {"."},
	"pkg/delivery/places":         {"."},
	"pkg/delivery/promotion":      {".", "weave"},
	"pkg/delivery/pulls/rewrite":  {},
	"pkg/delivery/planner":        {".", "changes", "routing", "waves"},
	"pkg/delivery/secrets":        {},
	"pkg/delivery/state":          {"."},
	"pkg/delivery/stages":         {".", "analysis", "routing", "variants", "waves"},
	"pkg/delivery/read":           {".", "copies"},
	"pkg/delivery/wanted":         {".", "copies"},
	"pkg/delivery/observe":        {".", "copies", "wanted"},
	"pkg/delivery/weave":          {},
	"pkg/delivery/weave/versions": {".", "observe", "weave"},
	"pkg/delivery/engine":         {".", "places", "planner", "stages"},
}

// deliveryControllers are the controllers of delivery and what they share, each with what it may import of the others. Neither controller knows the
// other: a release is an object that one of them makes and the other takes through its stages.
var deliveryControllers = map[string][]string{
	"pkg/delivery/controller/appdeployments":          {"objects"},
	"pkg/delivery/controller/applications":            {"applications/departures", "applications/sources", "drifts", "objects"},
	"pkg/delivery/controller/applications/departures": {"objects"},
	"pkg/delivery/controller/applications/sources":    {},
	"pkg/delivery/controller/drifts":                  {},
	"pkg/delivery/controller/gates":                   {},
	"pkg/delivery/controller/gitopsclusters":          {},
	"pkg/delivery/controller/objects":                 {},
	"pkg/delivery/controller/pipelines":               {},
	"pkg/delivery/controller/plugins":                 {},
	"pkg/delivery/controller/promotions":              {"objects"},
	"pkg/delivery/controller/releases":                {"drifts", "objects", "releases/routes", "releases/trials"},
	"pkg/delivery/controller/releases/routes":         {"objects"},
	"pkg/delivery/controller/releases/trials":         {"objects"},
}

// serverRooms are the rooms of the server, each with what it may import of the others: pkg/server itself puts all together.
var serverRooms = map[string][]string{
	"pkg/server":                     {"advertised", "bootstrap", "callers", "etcd", "identity", "keys", "kinds", "limits", "mirrors", "ours", "outgoing", "plugins", "podtokens", "podwebhooks", "promotions", "pushes", "quota", "reach", "specs", "stock", "storage", "storage/below", "storage/views", "trials", "views"},
	"pkg/server/advertised":          {},
	"pkg/server/bootstrap":           {"keys"},
	"pkg/server/callers":             {},
	"pkg/server/etcd":                {},
	"pkg/server/identity":            {},
	"pkg/server/keys":                {},
	"pkg/server/kinds":               {},
	"pkg/server/limits":              {},
	"pkg/server/mirrors":             {"identity"},
	"pkg/server/ours":                {},
	"pkg/server/outgoing":            {},
	"pkg/server/plugins":             {},
	"pkg/server/podtokens":           {"ours"},
	"pkg/server/podwebhooks":         {},
	"pkg/server/promotions":          {"callers"},
	"pkg/server/pushes":              {"callers"},
	"pkg/server/quota":               {},
	"pkg/server/reach":               {"ours"},
	"pkg/server/specs":               {},
	"pkg/server/stock":               {},
	"pkg/server/storage":             {"ours", "storage/below", "storage/claims", "storage/pods", "storage/services", "storage/views", "storage/workloads"},
	"pkg/server/storage/await":       {"identity"},
	"pkg/server/storage/below":       {"ours"},
	"pkg/server/storage/builtin":     {},
	"pkg/server/storage/claims":      {"identity", "ours", "storage/await", "storage/below", "storage/builtin", "storage/metadata"},
	"pkg/server/storage/metadata":    {"identity", "storage/builtin"},
	"pkg/server/storage/pods":        {"identity", "ours", "storage/await", "storage/below", "storage/builtin", "storage/metadata"},
	"pkg/server/storage/services":    {"ours", "storage/below", "storage/builtin"},
	"pkg/server/storage/storagetest": {"storage/below"},
	"pkg/server/storage/views":       {"identity", "storage/metadata", "views"},
	"pkg/server/storage/workloads":   {"identity", "storage/await", "storage/builtin", "storage/metadata"},
	"pkg/server/trials":              {},
	"pkg/server/views":               {},
}

var (
	pure = slices.Concat([]string{"pkg/delivery/pipecd", "pkg/identity", "pkg/mirror", "pkg/multicluster", "pkg/projection", "pkg/summary"}, slices.Sorted(maps.Keys(placementRooms)),
		slices.Sorted(maps.Keys(deliveryRooms)))
	controllers = []string{"pkg/clusters/...", "pkg/custom/...", "pkg/delivery/contents", "pkg/delivery/controller/...", "pkg/delivery/held", "pkg/delivery/insight/counted", "pkg/delivery/logs", "pkg/delivery/measure", "pkg/delivery/notify", "pkg/delivery/pulls/...", "pkg/delivery/scripts", "pkg/moves", "pkg/multicluster/controller", "pkg/placement/...", "pkg/records/...", "pkg/summary/...", "pkg/syncer/..."}
	server      = []string{"pkg/admission/...", "pkg/registry/...", "pkg/server/..."}
)

var rules = map[string]Rule{
	"only the server builds on Kubernetes' internals": {
		From:   []string{"apis/...", "cmd/...", "config/...", "e2e/...", "generated/...", "internal/...", "pkg/..."},
		Except: []string{"pkg/server/..."},
		Forbid: []string{"k8s.io/kubernetes/..."},
		Why:    "they change with every release, and whoever imports them has to be changed too; pkg/server is the one place for that",
	},
	"pure packages reach nothing outside": {
		From:    pure,
		Forbid:  []string{"k8s.io/client-go/...", "k8s.io/apiserver/...", "k8s.io/utils/clock/...", "net/...", "os/...", "context", "generated/..."},
		Allow:   []string{"net/netip"}, // addresses as values
		Through: true,
		Why:     "what they return must depend on their arguments alone, so that it can be tested, repeated and explained",
	},
	"pure packages are asked by controllers, not the other way round": {
		From:    pure,
		Forbid:  []string{"pkg/..."},
		Allow:   pure,
		Through: true,
		Why:     "the arrows run from the controllers to the pure packages",
	},
	"the API types know nothing of what works with them": {
		From:    []string{"apis/..."},
		Forbid:  []string{"cmd/...", "config/...", "generated/...", "hack/...", "pkg/...", "k8s.io/client-go/...", "k8s.io/apiserver/..."},
		Through: true,
		Why:     "others import the API types to build clients, and take on everything that these import",
	},
	"generated clients know the API types alone": {
		From:    []string{"generated/..."},
		Forbid:  []string{"cmd/...", "config/...", "hack/...", "pkg/..."},
		Through: true,
		Why:     "others import the clients, and take on everything that these import",
	},
	"controllers know nothing of the server and the commands": {
		From:   controllers,
		Forbid: append([]string{"cmd/...", "pkg/cli/...", "k8s.io/apiserver/..."}, server...),
		Allow: []string{
			"k8s.io/apiserver/pkg/authentication/serviceaccount",                                               // how ServiceAccounts are named
			"k8s.io/apiserver/pkg/admission", "k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules", // how webhooks are matched
		},
		Through: true,
		Why:     "the server assembles the controllers; one that asks the server back cannot run or be tested without it",
	},
	"a connection knows nothing of what it is for": {
		From:   []string{"pkg/clusters/connection"},
		Forbid: []string{"pkg/...", "generated/..."},
		Allow:  []string{"pkg/clusters/bearer", "pkg/clusters/bounds", "pkg/clusters/capacity", "pkg/clusters/rights"},
		Why:    "whose cluster it is, and whether it is well, is for pkg/clusters to know",
	},
	"who works with one cluster is handed its connection": {
		From:   []string{"pkg/custom", "pkg/syncer"},
		Forbid: []string{"pkg/clusters"},
		Why:    "pkg/clusters starts them for each connection; all that they need of it is in pkg/clusters/connection",
	},
	"clusters are let go of by what the logical cluster tells": {
		From:    []string{"pkg/clusters/drain", "pkg/clusters/removal"},
		Forbid:  []string{"pkg/clusters", "pkg/custom/...", "pkg/moves", "pkg/placement/controller", "pkg/placement/engine/...", "pkg/summary/controller", "pkg/syncer/..."},
		Through: true,
		Why:     "what runs in a cluster, and what would be decided about it, they are told by those that the server hands in",
	},
	"what is shown of a cluster is made of values": {
		From:   []string{"pkg/clusters/status"},
		Forbid: []string{"k8s.io/client-go/...", "context", "net/...", "os/...", "generated/...", "pkg/..."},
		Allow:  []string{"pkg/clusters/bearer", "pkg/clusters/capacity", "pkg/clusters/health", "pkg/placement"},
		Why:    "a status must follow from what was observed alone, so that it can be tested, and be written only when it differs",
	},
	"placement goes by what is shown of clusters": {
		From:   []string{"pkg/placement/..."},
		Forbid: []string{"pkg/clusters/..."},
		Allow:  []string{"pkg/clusters/status"},
		Why:    "a decision must not depend on connections, but on the objects that explain it",
	},
	"custom kinds are handed what the syncers do for them": {
		From:    []string{"pkg/custom/..."},
		Forbid:  []string{"pkg/syncer", "pkg/syncer/volumes"},
		Through: true,
		Why:     "controllers do not import each other: both have loops in each cluster, and share pkg/syncer/copies and what lies below it",
	},
	"what the loops of built-in and of custom kinds share knows neither": {
		From:    []string{"pkg/syncer/copies", "pkg/syncer/states", "pkg/syncer/steps", "pkg/syncer/writer"},
		Forbid:  []string{"pkg/custom/...", "pkg/syncer"},
		Through: true,
		Why:     "one path for all kinds; what only one of them needs belongs to its own loop",
	},
	"what decides and what makes statuses share by what lies below them": {
		From:   []string{"pkg/custom/...", "pkg/placement/controller", "pkg/records", "pkg/summary/controller", "pkg/syncer/..."},
		Forbid: []string{"pkg/custom/...", "pkg/placement/controller", "pkg/summary/controller"},
		Allow:  []string{"pkg/custom/described", "pkg/custom/gateways", "pkg/custom/shown", "pkg/custom/stored", "pkg/custom/watched"}, // which control nothing
		Why:    "a controller that imports another cannot be run or tested without it; what both need belongs to a package of its own, such as pkg/records",
	},
	"the server knows nothing of the commands": {
		From:    server,
		Forbid:  []string{"cmd/...", "pkg/cli/..."},
		Through: true,
		Why:     "commands start the server; a server that prints or asks cannot be embedded",
	},
	"commands talk to the API, only start brings the server along": {
		From:    []string{"pkg/cli/..."},
		Except:  []string{"pkg/cli", "pkg/cli/start"},
		Forbid:  server,
		Through: true,
		Why:     "a command must work against a logical cluster elsewhere, and what it shares with the server belongs to a package of its own",
	},
	"what joining makes is described without reaching a cluster": {
		From:   []string{"pkg/cli/cluster/grants"},
		Forbid: []string{"k8s.io/client-go/...", "context", "net/http", "os/...", "generated/...", "pkg/..."},
		Allow:  []string{"k8s.io/client-go/kubernetes/scheme", "pkg/clusters/rights", "pkg/podhooks"},
		Why:    "a dry run prints it, a check compares it and joining applies it, which have to be the same",
	},
	"what commands do in a cluster is done without a terminal": {
		From:   []string{"pkg/cli/cluster/grants", "pkg/cli/cluster/physical"},
		Forbid: []string{"github.com/spf13/...", "k8s.io/kubectl/...", "k8s.io/cli-runtime/..."},
		Why:    "flags, progress and what is printed belong to the commands",
	},
	"the command tree starts the server by its command alone": {
		From:   []string{"pkg/cli"},
		Forbid: server,
		Why:    "what it takes to start a server belongs to pkg/cli/start",
	},
	"the main package holds nothing but the command tree": {
		From:   []string{"cmd/..."},
		Forbid: []string{"apis/...", "config/...", "generated/...", "pkg/..."},
		Allow:  []string{"pkg/cli", "pkg/delivery/plugins/process", "pkg/delivery/render/confined"}, // which have to come before all else
		Why:    "code in a main package cannot be tested or used by others",
	},
	"what is inside of a decision is left to placement": {
		From:   []string{"cmd/...", "e2e/...", "hack/...", "pkg/..."},
		Except: []string{"pkg/placement/..."},
		Forbid: []string{"pkg/placement/rules", "pkg/placement/stuck", "pkg/placement/score", "pkg/placement/divide", "pkg/placement/ordinals",
			"pkg/placement/preempt"},
		Why: "a part of a decision that is made elsewhere is another decision; ask the engine, or pkg/placement/decide",
	},
	"who gathers for decisions leaves how they are made to them": {
		From:   []string{"pkg/placement/controller", "pkg/placement/engine/..."},
		Forbid: []string{"pkg/placement/score", "pkg/placement/divide", "pkg/placement/ordinals"},
		Why:    "they are stages of pkg/placement/decide, which mean nothing alone",
	},
	"statuses are made of reports": {
		From:    []string{"pkg/summary/controller", "pkg/summary/reports"},
		Forbid:  []string{"pkg/clusters", "pkg/custom/...", "pkg/moves", "pkg/placement/controller", "pkg/syncer/..."},
		Through: true,
		Why:     "controllers do not import each other: what clusters tell is pkg/summary/reports, whoever tells it",
	},
	"late decisions are made of objects": {
		From:    []string{"pkg/placement/controller"},
		Forbid:  []string{"pkg/clusters", "pkg/custom/...", "pkg/moves", "pkg/summary/controller", "pkg/syncer/..."},
		Through: true,
		Why:     "controllers do not import each other: what one of them does is seen in objects by the others",
	},
	"moves are made of what clusters have": {
		From:    []string{"pkg/moves"},
		Forbid:  []string{"pkg/clusters/...", "pkg/custom/...", "pkg/placement/controller", "pkg/summary/controller", "pkg/syncer/..."},
		Through: true,
		Why:     "syncers tell what their cluster has and ask for their step; the answer must not depend on how they come by it",
	},
	"syncers wait for no other controller": {
		From:    []string{"pkg/syncer", "pkg/syncer/volumes"},
		Forbid:  []string{"pkg/clusters", "pkg/placement/controller", "pkg/placement/engine/...", "pkg/summary/controller"},
		Through: true,
		Why:     "controllers do not import each other: what one of them does is seen in objects by the others",
	},
	"the rooms of the syncer know nothing of the syncer": {
		From: []string{"pkg/syncer/access", "pkg/syncer/adoption", "pkg/syncer/arrivals", "pkg/syncer/carried", "pkg/syncer/classes", "pkg/syncer/demand", "pkg/syncer/endpoints", "pkg/syncer/guard", "pkg/syncer/holding", "pkg/syncer/lacking", "pkg/syncer/logical", "pkg/syncer/mirrors", "pkg/syncer/physical", "pkg/syncer/planning", "pkg/syncer/reporting", "pkg/syncer/route", "pkg/syncer/secrets", "pkg/syncer/services", "pkg/syncer/states", "pkg/syncer/strangers",
			"pkg/syncer/terms", "pkg/syncer/trust", "pkg/syncer/watching"},
		Forbid:  []string{"pkg/syncer", "pkg/syncer/volumes"},
		Through: true,
		Why:     "it puts them together, and waits for other clusters; what they have to ask it, it gives them as functions",
	},
	"what may be shown is asked of the logical cluster's own record": {
		From:    []string{"pkg/syncer/guard", "pkg/syncer/logical"},
		Forbid:  []string{"pkg/syncer/mirrors", "pkg/syncer/physical"},
		Through: true,
		Why:     "what a cluster says of itself is what is checked",
	},
	"what a cluster has is found without the logical cluster": {
		From:    []string{"pkg/syncer/physical"},
		Forbid:  []string{"pkg/syncer/guard", "pkg/syncer/holding", "pkg/syncer/lacking", "pkg/syncer/logical", "pkg/syncer/mirrors"},
		Through: true,
		Why:     "it tells what is there; what of that counts is another question",
	},
	"exported Services are made of objects of the logical cluster": {
		From:    []string{"pkg/multicluster/controller"},
		Forbid:  []string{"pkg/clusters/...", "pkg/custom/...", "pkg/delivery/...", "pkg/moves", "pkg/placement/controller", "pkg/placement/engine/...", "pkg/summary/controller", "pkg/syncer/..."},
		Allow:   []string{"pkg/clusters/health"}, // the reasons in the conditions of a Cluster
		Through: true,
		Why:     "controllers do not import each other: what pods there are, and what of their addresses is believed, the server hands in",
	},
	"delivery acts by objects of the logical cluster": {
		From:    []string{"pkg/delivery/..."},
		Forbid:  []string{"pkg/clusters/...", "pkg/custom/...", "pkg/moves", "pkg/placement/controller", "pkg/placement/engine/...", "pkg/summary/controller", "pkg/syncer/..."},
		Allow:   []string{"pkg/clusters/health"}, // the reasons in the conditions of a Cluster
		Through: true,
		Why:     "where objects run, and how they fare there, is told by decisions, statuses and Clusters; nothing of a release may hang on who holds the connections",
	},
	"applications are kept without knowing how releases go": {
		From:    []string{"pkg/delivery/controller/applications/..."},
		Forbid:  []string{"pkg/delivery/analysis", "pkg/delivery/engine", "pkg/delivery/logs", "pkg/delivery/measure", "pkg/delivery/planner", "pkg/delivery/scripts", "pkg/delivery/stages", "pkg/delivery/traffic"},
		Through: true,
		Why:     "they make Releases and read what became of these; another way to release must not change them",
	},
	"releases know nothing of where applications come from": {
		From:    []string{"pkg/delivery/controller/releases/..."},
		Forbid:  []string{"pkg/delivery/automation", "pkg/delivery/pipecd", "pkg/delivery/render/...", "pkg/delivery/source/..."},
		Through: true,
		Why:     "what is released is a revision, which is read as it was stored and proven by its hash; its source may have changed or gone",
	},
	"objects are written without asking for whom": {
		From:    []string{"pkg/delivery/controller/drifts", "pkg/delivery/controller/objects"},
		Forbid:  []string{"pkg/delivery/automation", "pkg/delivery/contents", "pkg/delivery/engine", "pkg/delivery/planner", "pkg/delivery/stages"},
		Through: true,
		Why:     "an order says what is wanted, as whom and for which owner; that it is right for the state of a release is decided by values before",
	},
	"what is read from elsewhere is read without the API": {
		From:   []string{"pkg/delivery/source/..."},
		Forbid: []string{"apis/...", "generated/...", "pkg/...", "k8s.io/client-go/...", "k8s.io/apiserver/..."},
		Why:    "a source is a place and credentials; which object names them, and who may see what comes of it, is for others to know",
	},
	"pull requests are opened without the API": {
		From:   []string{"pkg/delivery/pulls/..."},
		Forbid: []string{"apis/...", "generated/...", "pkg/...", "k8s.io/client-go/...", "k8s.io/apiserver/..."},
		Allow:  []string{"pkg/delivery/pulls/...", "pkg/delivery/source/git", "pkg/delivery/weave"},
		Why:    "a repository, a version and a credential are values; which pipeline asks, and whether it may, is decided before",
	},
	"what is said to plugins is plain messages": {
		From:   []string{"pkg/delivery/plugins/wire/..."},
		Forbid: []string{"apis/...", "generated/...", "pkg/...", "k8s.io/..."},
		Allow:  []string{"pkg/delivery/plugins/wire/..."},
		Why:    "the protocol is PipeCD's: what of it becomes of our objects is for those who speak it to say",
	},
	"programs of plugins are run without knowing what for": {
		From:   []string{"pkg/delivery/plugins/process"},
		Forbid: []string{"apis/...", "generated/...", "pkg/...", "k8s.io/client-go/...", "k8s.io/apiserver/...", "google.golang.org/grpc/..."},
		Why:    "it is linked into the process that becomes a program, and bounds whatever that is",
	},
	"plugins are kept alive without the API": {
		From:   []string{"pkg/delivery/plugins/host"},
		Forbid: []string{"generated/...", "pkg/...", "k8s.io/client-go/...", "k8s.io/apiserver/..."},
		Allow:  []string{"pkg/delivery/plugins", "pkg/delivery/plugins/fetch", "pkg/delivery/plugins/process", "pkg/delivery/plugins/wire/..."},
		Why:    "what is to run it is told, and how that fares it tells; which objects that is for, their controller knows",
	},
	"programs of plugins are fetched without the API": {
		From:   []string{"pkg/delivery/plugins/fetch"},
		Forbid: []string{"apis/...", "generated/...", "pkg/...", "k8s.io/client-go/...", "k8s.io/apiserver/..."},
		Why:    "an address and a checksum are values; which Plugin has them, and who may say so, is decided before",
	},
	"what a Piped file says follows from the file": {
		From:   []string{"pkg/delivery/plugins/piped"},
		Forbid: []string{"generated/...", "pkg/...", "k8s.io/client-go/...", "k8s.io/apiserver/...", "net/http", "os"},
		Allow:  []string{"pkg/delivery/pipecd"}, // how a field is told that nobody acts upon
		Why:    "programs are fetched, and checksums made, by who wants the Plugins",
	},
	"plugins are called and answered without knowing how releases go": {
		From:    []string{"pkg/delivery/plugins/calls", "pkg/delivery/plugins/services"},
		Forbid:  []string{"pkg/delivery/controller/...", "pkg/delivery/engine", "pkg/delivery/planner", "pkg/delivery/source/...", "pkg/delivery/stages"},
		Through: true,
		Why:     "a stage of a plugin is a plan, a call and what has come of it; what follows from that is for the engine to say",
	},
	"files of strangers are rendered in a process of their own": {
		From:   []string{"cmd/...", "pkg/..."},
		Except: []string{"pkg/delivery/render"},
		Forbid: []string{"helm.sh/...", "sigs.k8s.io/kustomize/api/krusty"},
		Why:    "a template may take all memory, and the process with it; ask pkg/delivery/render/confined",
	},
	"what files render to follows from the files": {
		From:    []string{"pkg/delivery/render"},
		Forbid:  []string{"apis/...", "generated/...", "pkg/...", "k8s.io/client-go/...", "k8s.io/apiserver/...", "net/...", "os/...", "helm.sh/helm/v4/pkg/action"},
		Through: true,
		Why:     "it is given a tree and options; what it read elsewhere, of the disk, the network or the cluster, strangers' files would choose",
	},
	"how groups are stored knows none of them": {
		From:   []string{"pkg/registry/group", "pkg/registry/table"},
		Forbid: []string{"apis/...", "generated/...", "pkg/..."},
		Why:    "every group of our own is stored in one way; what is special about a kind is said where its group is",
	},
	"the product needs nothing of the tools and tests": {
		From:   []string{"apis/...", "cmd/...", "config/...", "generated/...", "pkg/..."},
		Except: []string{"generated/clientset/versioned/fake/...", "generated/clientset/versioned/typed/delivery/v1alpha1/fake", "generated/clientset/versioned/typed/manifold/v1alpha1/fake", "pkg/delivery/pulls/forges/forgetest", "pkg/delivery/source/git/gittest", "pkg/registry/group/grouptest", "pkg/server/storage/storagetest"},
		Forbid: []string{"hack/...", "e2e/...", "internal/deptest", "pkg/delivery/pulls/forges/forgetest", "pkg/delivery/source/git/gittest", "pkg/placement/build", "pkg/registry/group/grouptest", "pkg/server/storage/storagetest", "testing/...", "k8s.io/client-go/testing/...", "k8s.io/client-go/kubernetes/fake",
			"k8s.io/utils/clock/testing", "generated/clientset/versioned/fake/...", "github.com/google/go-containerregistry/..."},
		Why: "what is for tests does not belong into the binary",
	},
}

func TestImportsFollowTheRules(t *testing.T) {
	graph, err := Read(root, module)
	if err != nil {
		t.Fatal(err)
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			for _, violation := range rule.Violations(graph) {
				t.Error(violation)
			}
			for _, pattern := range rule.Stale(graph) {
				t.Errorf("no package matches %q: the rule guards nothing there", pattern)
			}
		})
	}
}

// Whoever adds a room of placement says here where it belongs.
func TestTheArrowsBetweenTheRoomsOfPlacementRunOneWay(t *testing.T) {
	testRooms(t, "pkg/placement", placementRooms, "pkg/placement/controller", "pkg/placement/engine/...")
}

// Whoever adds a room of delivery says here where it belongs. What reads from elsewhere, or objects of the API, is no room: it has rules of its own.
func TestTheArrowsBetweenTheRoomsOfDeliveryRunOneWay(t *testing.T) {
	testRooms(t, "pkg/delivery", deliveryRooms, "pkg/delivery/contents", "pkg/delivery/controller/...", "pkg/delivery/held", "pkg/delivery/insight/counted", "pkg/delivery/logs", "pkg/delivery/measure", "pkg/delivery/notify", "pkg/delivery/pipecd/...", "pkg/delivery/plugins/...", "pkg/delivery/pulls", "pkg/delivery/pulls/forges/...", "pkg/delivery/render/...", "pkg/delivery/scripts", "pkg/delivery/source/...")
}

// Whoever adds a controller of delivery says here what it has to do with the others.
func TestTheControllersOfDeliveryDoNotImportEachOther(t *testing.T) {
	testRooms(t, "pkg/delivery/controller", deliveryControllers)
}

// Whoever adds a room of the server says here where it belongs.
func TestTheArrowsBetweenTheRoomsOfTheServerRunOneWay(t *testing.T) {
	testRooms(t, "pkg/server", serverRooms)
}

// testRooms holds the folders in house to what they may import of one another, except for those that are no rooms.
func testRooms(t *testing.T, house string, rooms map[string][]string, outside ...string) {
	t.Helper()
	graph, err := Read(root, module)
	if err != nil {
		t.Fatal(err)
	}
	inside := []string{house + "/..."}
	for folder, imports := range graph {
		if !matches(inside, folder) || matches(outside, folder) {
			continue
		}
		below, known := rooms[folder]
		if !known {
			t.Errorf("%s is a room of %s that is not listed", folder, house)
		}
		for _, imported := range imports {
			if matches(inside, imported) && !slices.ContainsFunc(below, func(room string) bool { return path.Join(house, room) == imported }) {
				t.Errorf("%s imports %s", folder, imported)
			}
		}
	}
	for folder := range rooms {
		if graph[folder] == nil {
			t.Errorf("there is no %s", folder)
		}
	}
}

// A package that is named after nothing in particular collects everything.
func TestPackagesAreNamedAfterWhatTheyHold(t *testing.T) {
	graph, err := Read(root, module)
	if err != nil {
		t.Fatal(err)
	}
	for folder := range graph {
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "shared"}, path.Base(folder)) {
			t.Errorf("package %s has a name that says nothing", folder)
		}
	}
}

// pureImports are what pure packages may import beside each other and the standard library: types, and functions of them.
var pureImports = []string{
	"apis/...", "github.com/Masterminds/semver/v3", "github.com/aclements/go-moremath/stats", "go.yaml.in/yaml/v3", "internal/heard",
	"internal/imageref", "internal/text", "k8s.io/api/...", "k8s.io/apimachinery/...", "k8s.io/component-helpers/...", "k8s.io/utils/...",
	"sigs.k8s.io/mcs-api/pkg/apis/...", "sigs.k8s.io/structured-merge-diff/...", "sigs.k8s.io/yaml",
}

// A library that nobody has thought about may bring a client, a cache or a clock along, which every test would have to fake.
func TestPurePackagesImportWhatIsKnownToBePure(t *testing.T) {
	graph, err := Read(root, module)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range pure {
		if len(graph[folder]) == 0 {
			t.Fatalf("%s imports nothing: it is no package", folder)
		}
		for _, imported := range graph[folder] {
			first, _, _ := strings.Cut(imported, "/")
			_, ours := graph[imported]
			standard := !ours && !strings.Contains(first, ".")
			if !standard && !matches(pureImports, imported) && !slices.Contains(pure, imported) || standard && matches([]string{"sync/...", "math/rand/..."}, imported) {
				t.Errorf("%s imports %s", folder, imported)
			}
		}
	}
}

// A pure function takes the time as an argument.
func TestPurePackagesReadNoClock(t *testing.T) {
	for _, folder := range pure {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Fatalf("%s has no files", folder)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range clockCalls(t, file, text) {
				t.Errorf("%s calls %s: take the time as an argument", file, call)
			}
		}
	}
}

func TestClockCallsAreFound(t *testing.T) {
	text := `package p
import "time"
var a = time.Second
func b() time.Duration { return time.Since(time.Now()) }
`
	got := clockCalls(t, "p.go", []byte(text))
	if want := []string{"time.Now", "time.Since"}; !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
}

// clockCalls returns what a file uses of package time that depends on the present, sorted.
func clockCalls(t *testing.T, name string, text []byte) []string {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	present := []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "NewTimer", "NewTicker", "Tick"}
	found := map[string]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); ok && (of.Name == "time" || of.Name == "metav1") && slices.Contains(present, selector.Sel.Name) {
			found[of.Name+"."+selector.Sel.Name] = true
		}
		return true
	})
	return slices.Sorted(maps.Keys(found))
}
