// Lets the identities of the processes pull their images from a registry of this resource group.

import { roles } from 'roles.bicep'

@description('The registry.')
param name string

@description('Which processes pull.')
param processes string[]

@description('The object ids, by process.')
param principals object

resource registry 'Microsoft.ContainerRegistry/registries@2023-07-01' existing = {
  name: name
}

resource granted 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for process in processes: {
    name: guid(registry.id, principals[process], 'AcrPull')
    scope: registry
    properties: {
      principalId: principals[process]
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles.AcrPull)
    }
  }
]

@description('Where images are pulled from.')
output server string = registry.properties.loginServer
