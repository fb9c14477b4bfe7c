package server

import (
	_ "go.etcd.io/etcd/server/v3/embed"
	_ "k8s.io/api/apps/v1"
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver"
	_ "k8s.io/apimachinery/pkg/runtime"
	_ "k8s.io/apiserver/pkg/server"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/component-base/version"
	_ "k8s.io/kube-aggregator/pkg/apiserver"
	_ "k8s.io/kubectl/pkg/cmd"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	_ "k8s.io/kubernetes/pkg/controlplane/apiserver"
	_ "k8s.io/code-generator/cmd/deepcopy-gen"
	_ "golang.org/x/sync/errgroup"
	_ "github.com/spf13/cobra"
)
