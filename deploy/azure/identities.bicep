// One identity for each process, so that each has the roles that it needs and no others.

@description('The beginning of all names.')
param name string

@description('Where the identities are.')
param location string

resource gateway 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${name}-gateway'
  location: location
}

resource orchestrator 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${name}-orchestrator'
  location: location
}

resource worker 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${name}-worker'
  location: location
}

resource serveInternal 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${name}-serve-internal'
  location: location
}

resource serveExternal 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${name}-serve-external'
  location: location
}

// Migrates the schema, prunes and verifies outputs; no process that answers requests has it.
resource operations 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${name}-operations'
  location: location
}

// Counts messages for the scale rules, which takes the right to manage a queue; no container can use it.
resource scaler 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${name}-scaler'
  location: location
}

@description('The object ids, by process, which roles are given to.')
output principals object = {
  gateway: gateway.properties.principalId
  orchestrator: orchestrator.properties.principalId
  worker: worker.properties.principalId
  serveInternal: serveInternal.properties.principalId
  serveExternal: serveExternal.properties.principalId
  operations: operations.properties.principalId
  scaler: scaler.properties.principalId
}

@description('What a process is told of its identity, by process.')
output identities object = {
  gateway: { id: gateway.id, clientId: gateway.properties.clientId, name: gateway.name }
  orchestrator: { id: orchestrator.id, clientId: orchestrator.properties.clientId, name: orchestrator.name }
  worker: { id: worker.id, clientId: worker.properties.clientId, name: worker.name }
  serveInternal: { id: serveInternal.id, clientId: serveInternal.properties.clientId, name: serveInternal.name }
  serveExternal: { id: serveExternal.id, clientId: serveExternal.properties.clientId, name: serveExternal.name }
  operations: { id: operations.id, clientId: operations.properties.clientId, name: operations.name }
  scaler: { id: scaler.id, clientId: scaler.properties.clientId, name: scaler.name }
}
