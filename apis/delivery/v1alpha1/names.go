package v1alpha1

// Names on objects of the logical cluster.
const (
	// LabelApplication is carried by the revisions and releases of an Application, and by what is made for it: its name.
	LabelApplication = "delivery.manifold.dev/application"
	// LabelVariant is the key of the label that tells the pods of variants apart, where spec.variantLabel does not say another.
	LabelVariant = "delivery.manifold.dev/variant"
)

// AnnotationRevision is carried by objects in clusters whose content is that of a revision: NAME@HASH, where HASH is that of the manifest.
const AnnotationRevision = "delivery.manifold.dev/revision"

// AnnotationRoutes says what of an object of the logical cluster clusters hold otherwise, because requests are shared out over variants there: JSON,
// by cluster. In a cluster it is the hash of what is held otherwise.
const AnnotationRoutes = "delivery.manifold.dev/routes"

// Names on what is made for an Application, which Manifold alone writes.
const (
	// AnnotationVariant names the variant that an object belongs to.
	AnnotationVariant = "delivery.manifold.dev/variant"
	// AnnotationApplied is the hash of what was applied last; equal hashes need no write.
	AnnotationApplied = "delivery.manifold.dev/applied"
	// AnnotationContent names the manifest that an object of a custom kind is made of: REVISION/TARGET.
	AnnotationContent = "delivery.manifold.dev/content"
	// AnnotationOwner names the Application that an object in no namespace belongs to, which can have no owner reference to it: NAMESPACE/NAME/UID.
	AnnotationOwner = "delivery.manifold.dev/owner"
	// AnnotationServiceOf is on a Service that was made to lead to the primary alone: the name of the Service in front that it was made of.
	AnnotationServiceOf = "delivery.manifold.dev/service-of"
	// LabelPlacement names the PlacementPolicy that a workload was made to follow.
	LabelPlacement = "delivery.manifold.dev/placement"
	// AnnotationMadeOf is on a workload that is a copy of an ApplicationRevision for an ApplicationDeployment: its name. The revision is kept that long.
	AnnotationMadeOf = "delivery.manifold.dev/made-of"
	// FieldManager is the name under which objects are applied in the logical cluster.
	FieldManager = "manifold-delivery"
)

// Names of variants, which are also the values of their label where spec.variantLabel does not say others.
const (
	// VariantPrimary is the application itself.
	VariantPrimary = "primary"
	// VariantCanary is a copy at the revision that is being released.
	VariantCanary = "canary"
	// VariantBaseline is a copy at the revision that ran before, to compare the canary with.
	VariantBaseline = "baseline"
)

// AllVariants is in AnnotationVariant of a route that is made: it is of all of them.
const AllVariants = "*"

// DefaultTarget is the name of the one target of an Application that names none: placement decides about its clusters.
const DefaultTarget = "default"

// SecretRevision is the type of the Secrets that hold the manifests of a revision which are Secrets.
const SecretRevision = "delivery.manifold.dev/revision"

// Keys of the Secret that a git source names.
const (
	// GitSecretUsername and GitSecretPassword are for HTTPS. A token goes as the password.
	GitSecretUsername = "username"
	GitSecretPassword = "password"
	// GitSecretIdentity is a private key for SSH, which GitSecretPassword opens if it is encrypted, and GitSecretKnownHosts are the hosts that it may be
	// used with.
	GitSecretIdentity   = "identity"
	GitSecretKnownHosts = "known_hosts"
	// GitSecretAuthority is the certificate authority of an HTTPS server, in PEM.
	GitSecretAuthority = "ca.crt"
)

// WebhookSecretToken is the key of the Secret that a git webhook names: the secret that the forge signs pushes by.
const WebhookSecretToken = "token"

// Keys of the Secret that a metric or request of ANALYSIS names.
const (
	// AnalysisSecretUsername and AnalysisSecretPassword are who asks.
	AnalysisSecretUsername = "username"
	AnalysisSecretPassword = "password"
	// AnalysisSecretToken is a bearer token in their place.
	AnalysisSecretToken = "token"
	// AnalysisSecretAuthority is the certificate authority of the server, in PEM.
	AnalysisSecretAuthority = "ca.crt"
)

// Keys of the Secret that a notification names.
const (
	// NotificationSecretURL is where notices are sent.
	NotificationSecretURL = "url"
	// NotificationSecretKey signs them, if it is there.
	NotificationSecretKey = "hmac-key"
)
