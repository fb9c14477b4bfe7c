package specs

import (
	"fmt"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
)

// Free has configurations of documents hold nothing of the documents that are made by them. Who makes the first one fills in for good, where it is
// missing, how operations are named, by a function that holds all that this document is made of: 15 MiB of descriptions of all built-in kinds.
func Free(v2 *common.Config, v3 *common.OpenAPIV3Config) {
	v2.GetOperationIDAndTagsFromRoute = operations(v2.GetOperationIDAndTags)
	v3.GetOperationIDAndTagsFromRoute = operations(v3.GetOperationIDAndTags)
}

// operations returns the function that is missing, as kube-openapi makes it.
func operations(named func(*restful.Route) (string, []string, error)) func(common.Route) (string, []string, error) {
	if named == nil {
		return func(route common.Route) (string, []string, error) { return route.OperationName(), nil, nil }
	}
	return func(route common.Route) (string, []string, error) {
		adapted, ok := route.(*restfuladapter.RouteAdapter)
		if !ok {
			return "", nil, fmt.Errorf("name the operation of %s %s for its OpenAPI document: its route is not one of go-restful", route.Method(), route.Path())
		}
		return named(adapted.Route)
	}
}
