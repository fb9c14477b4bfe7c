package manifests

import _ "embed"

// App is a Deployment "web" with everything that one can refer to, and beside each something that nothing refers to.
//
//go:embed app.yaml
var App string

// AppDependents is what the Deployment of App needs.
var AppDependents = []string{
	"ConfigMap env", "ConfigMap env-from", "ConfigMap projected", "ConfigMap volume",
	"Secret env", "Secret pull", "Secret pull-by-account", "Secret volume",
	"Service headless", "Service web", "ServiceAccount worker",
}
