package pipecd

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// kubernetesPlugins are the plugins that deliver to Kubernetes, by the names that PipeCD's documentation gives them.
var kubernetesPlugins = []string{"kubernetes", "kubernetes_multicluster", "k8s"}

// stagePlugins offer stages alone, which are built in.
var stagePlugins = []string{"wait", "waitapproval", "wait_approval", "analysis", "scriptrun", "script_run"}

// plugins reads what an application has for the plugins of Kubernetes. The first drafts have the names of plugins alone, in a list, and the
// fields of Kubernetes beside it.
func (r *reading) plugins(spec *fields) {
	if _, names := spec.values["plugins"].([]any); names || !spec.has("plugins") {
		for i, name := range spec.texts("plugins") {
			if _, used := r.uses.plugin(name); !used && !slices.Contains(kubernetesPlugins, name) && !slices.Contains(stagePlugins, name) {
				r.ignore(spec.at("plugins").Index(i), "there is no such plugin here")
			}
		}
		r.kubernetes(spec)
		return
	}
	plugins := spec.object("plugins")
	var found string
	for _, name := range slices.Sorted(maps.Keys(plugins.values)) {
		_, used := r.uses.plugin(name)
		switch {
		case used:
			r.used(plugins, name)
		case slices.Contains(stagePlugins, name):
			if config, is := plugins.values[name].(map[string]any); is && len(config) == 0 {
				plugins.take(name)
			} else {
				plugins.ignore("its stages are built in, and have their options in the pipeline", name)
			}
		case !slices.Contains(kubernetesPlugins, name):
			plugins.ignore("there is no such plugin here", name)
		case found != "":
			r.refuse(plugins.at(name), name, fmt.Sprintf("there is %s already: one plugin delivers the application", found))
		default:
			found = name
			plugin := plugins.object(name)
			r.kubernetes(plugin)
			r.pipelineOf(plugin, spec)
			plugin.done()
		}
	}
	if found == "" && len(r.out.Spec.Plugins) == 0 {
		r.refuse(spec.at("plugins"), slices.Sorted(maps.Keys(plugins.values)), "one of them must be a plugin of Kubernetes: kubernetes or kubernetes_multicluster")
	}
	plugins.done()
	if spec.has("quickSync") || spec.has("input") {
		r.kubernetes(&fields{reading: r, path: spec.path, values: withoutPlugins(spec)})
	}
}

// pipelineOf notes that a plugin has the pipeline, as in examples of PipeCD, unless the application has one.
func (r *reading) pipelineOf(plugin, spec *fields) {
	if spec.has("pipeline") {
		plugin.ignore("the application has a pipeline of its own", "pipeline")
	} else if plugin.take("pipeline") != nil {
		r.within = plugin
	}
}

// withoutPlugins takes what some files have of Kubernetes beside their plugins.
func withoutPlugins(spec *fields) map[string]any {
	out := map[string]any{}
	for _, key := range []string{"quickSync", "input"} {
		if value := spec.take(key); value != nil {
			out[key] = value
		}
	}
	return out
}

// kubernetes reads what is about Kubernetes.
func (r *reading) kubernetes(in *fields) {
	r.input(in.object("input"))
	quick := in.object("quickSync")
	r.prune(quick)
	if quick.flag("addVariantLabelToSelector") {
		r.selects = quick.at("addVariantLabelToSelector")
	}
	known := len(r.out.Spec.Targets)
	if named := r.targets(quick); known > 0 && len(named) > 0 && len(named) < len(r.out.Spec.Targets) {
		r.ignore(quick.path, "a release without the pipeline goes to all targets of the input; manifold app sync --target goes to some")
	}
	quick.done()
	r.workloads(in)
	r.variantLabel(in)
	r.trafficRouting(in)
	in.ignore("all objects of a target go to its clusters", "resourceRoutes")
}

// prune is about releases without the pipeline. A plugin of Kubernetes and the spec beside it may both say so.
func (r *reading) prune(quick *fields) {
	prune := quick.flag("prune")
	if !quick.has("prune") {
		return
	}
	if r.out.Prune != nil && *r.out.Prune != prune {
		r.refuse(quick.at("prune"), prune, saidOtherwise)
	}
	r.out.Prune = &prune
}

func (r *reading) input(input *fields) {
	if namespace := input.text("namespace"); namespace != "" {
		r.out.Input.Namespace, r.out.namespaceAt = namespace, input.at("namespace").String()
	}
	if manifests := input.texts("manifests"); manifests != nil {
		r.out.Input.Manifests = manifests
	}
	r.autoRollback(input)
	if input.flag("autoCreateNamespace") {
		r.ignore(input.at("autoCreateNamespace"), "namespaces in clusters are made as they are needed, and in the logical cluster by whoever may")
	}
	r.programs(input)
	r.chart(input)
	r.targets(input)
	input.done()
}

// programs notes what is said of programs that render, of which none is run.
func (r *reading) programs(in *fields) {
	in.ignore("no program is run: this is done by a library, whose version is the server's", "kubectlVersion", "kustomizeVersion", "helmVersion")
	in.ignore("kustomize is not run as a program, and takes no options", "kustomizeOptions")
}

func (r *reading) chart(input *fields) {
	chart, options := input.object("helmChart"), input.object("helmOptions")
	out := &r.out.Input.Chart
	if at := chart.text("path"); at != "" {
		out.Path = path.Clean(at)
	}
	chart.ignore("charts are read from the repository of the application alone", "gitRemote", "ref", "repository", "name", "version", "insecure")
	if release := options.text("releaseName"); release != "" {
		out.Release = release
	}
	out.ValuesFiles = append(out.ValuesFiles, options.texts("valueFiles")...)
	out.APIVersions = append(out.APIVersions, options.texts("apiVersions")...)
	if version := options.text("kubeVersion"); version != "" {
		out.KubeVersion = version
	}
	options.ignore("put the value into a file of values", "setFiles")
	chart.done()
	options.done()
}

func (r *reading) workloads(in *fields) {
	service := in.object("service")
	if kind := service.text("kind"); kind != "" && kind != "Service" {
		r.refuse(service.at("kind"), kind, "must be Service")
	}
	if name := service.text("name"); name != "" {
		r.out.Spec.Service = &v1alpha1.ServiceReference{Name: name}
	}
	service.done()
	for _, workload := range in.objects("workloads") {
		reference := v1alpha1.WorkloadReference{Kind: workload.text("kind"), Name: workload.text("name")}
		workload.done()
		if kind := reference.Kind; kind != "" && kind != "Deployment" && kind != "StatefulSet" {
			r.ignore(workload.path, "variants are made of Deployments and StatefulSets")
			continue
		}
		r.out.Spec.Workloads = append(r.out.Spec.Workloads, reference)
	}
}

// variantKey is the label by which PipeCD tells variants apart: manifests may have it in their selectors.
const variantKey = "pipecd.dev/variant"

func (r *reading) variantLabel(in *fields) {
	label := in.object("variantLabel")
	out := v1alpha1.VariantLabel{
		Key: label.text("key"), PrimaryValue: label.text("primaryValue"), CanaryValue: label.text("canaryValue"), BaselineValue: label.text("baselineValue"),
	}
	if out.Key == "" {
		out.Key = variantKey
	}
	if r.out.Spec.VariantLabel == (v1alpha1.VariantLabel{}) || label.values != nil {
		r.out.Spec.VariantLabel = out
	}
	label.done()
}

func (r *reading) trafficRouting(in *fields) {
	if !in.has("trafficRouting") {
		in.take("trafficRouting")
		return
	}
	routing := in.object("trafficRouting")
	istio := routing.object("istio")
	switch method := routing.text("method"); method {
	case "", "podselector":
		r.out.Spec.Traffic = &v1alpha1.Traffic{Method: v1alpha1.TrafficService}
	case "istio":
		service := istio.object("virtualService")
		if kind := service.text("kind"); kind != "" && kind != "VirtualService" {
			r.refuse(service.at("kind"), kind, "must be VirtualService")
		}
		r.out.Spec.Traffic = &v1alpha1.Traffic{
			Method: v1alpha1.TrafficVirtualService, Name: service.text("name"), Routes: istio.texts("editableRoutes"), Subsets: true,
		}
		service.done()
		if r.out.Spec.Traffic.Finds() && !r.uses.Account {
			r.ignore(routing.at("method"), "the VirtualService is among the manifests, and is applied as a ServiceAccount that may apply it: "+
				"name one in spec.serviceAccountName of the Application, or import with --serviceaccount NAME")
		}
	default:
		r.ignore(routing.at("method"), fmt.Sprintf("there is no method %q; podselector and istio are", method))
	}
	if r.out.Spec.Traffic != nil && r.out.Spec.Traffic.Method == v1alpha1.TrafficVirtualService {
		istio.ignore("the routes are those that send requests to the Service", "host")
		istio.done()
	} else {
		routing.ignore("the method is another", "istio")
	}
	routing.done()
}
