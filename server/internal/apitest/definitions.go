package apitest

import "fmt"

// DefinitionsPath is the path of the CustomResourceDefinitions.
const DefinitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// WidgetDefinitionPath is the path of the definition of the widgets.
const WidgetDefinitionPath = DefinitionsPath + "/widgets.example.com"

// WidgetsPath is the path of the widgets in the namespace default.
const WidgetsPath = "/apis/example.com/v1/namespaces/default/widgets"

// NewWidgetDefinition returns a CustomResourceDefinition of widgets with a spec that has the given
// OpenAPI properties.
func NewWidgetDefinition(properties string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
	"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},
	"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":` +
		properties + `}}}},"selectableFields":[{"jsonPath":".spec.a"}]}]}}`
}

// NewWidget returns a widget with a JSON spec.
func NewWidget(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q},"spec":%s}`, name, spec)
}

// WidgetManifest is a definition of widgets with descriptions and a required field.
const WidgetManifest = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        description: Widget is a thing that does things.
        properties:
          spec:
            type: object
            description: Spec is what the widget shall do.
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: Size says how big it is.}
              parts:
                type: array
                items: {type: object, properties: {name: {type: string, description: Name of a part.}}}
`
