package piped

// unhonoured are the fields of a Piped file that are not about plugins, each with what takes its place.
var unhonoured = map[string]string{
	"projectID":             noControlPlane,
	"pipedID":               noControlPlane,
	"pipedKeyFile":          noControlPlane,
	"pipedKeyData":          noControlPlane,
	"name":                  noControlPlane,
	"apiAddress":            noControlPlane,
	"webAddress":            noControlPlane,
	"appSelector":           "every Application of the logical cluster is taken care of",
	"syncInterval":          interval,
	"appConfigSyncInterval": interval,
	"git":                   "the Secret that spec.source.git.secretRef of an Application names has its credentials",
	"repositories":          "spec.source.git of an Application names its repository",
	"chartRepositories":     charts,
	"chartRegistries":       charts,
	"cloudProviders":        providers,
	"platformProviders":     providers,
	"analysisProviders":     "spec.source.git.pipecd.analysisProviders of an Application has their addresses, and analysisSecrets their credentials",
	"notifications":         "spec.notifications of an Application say who is notified",
	"secretManagement":      "Secrets of the logical cluster, or what makes them there, hold secrets",
	"eventWatcher":          "spec.source.git of an Application is polled, and git servers announce pushes by its webhook",
	"imageProviders":        "spec.source.git of an Application is polled; images are not watched",
}

const (
	noControlPlane = "there is no control plane of PipeCD to call: the logical cluster keeps what it would"
	interval       = "spec.source.git.interval of an Application says how often its repository is polled"
	charts         = "charts of built-in stages come from the repository of their Application; a plugin is told of others in its own config"
	providers      = "targets of an Application name Clusters, which \"manifold cluster join\" makes, and plugins have deployTargets"
)
