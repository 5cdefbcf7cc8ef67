// The keys that processes share with each other; each process reads the secrets that it needs and no others.

import { roles } from 'roles.bicep'

@description('The name of the vault.')
param name string

@description('Where it is.')
param location string

@description('The secrets, by name.')
@secure()
param secrets object

@description('Their names.')
param secretNames string[]

@description('Who may read which secret.')
param grants {
  process: string
  role: string
  secret: string
}[]

@description('The object ids, by process.')
param principals object

resource vault 'Microsoft.KeyVault/vaults@2023-07-01' = {
  name: name
  location: location
  properties: {
    tenantId: subscription().tenantId
    sku: {
      family: 'A'
      name: 'standard'
    }
    enableRbacAuthorization: true
    enableSoftDelete: true
    enablePurgeProtection: true
  }
}

resource kept 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = [
  for secretName in secretNames: {
    parent: vault
    name: secretName
    properties: {
      value: secrets[secretName]
    }
  }
]

module granted 'secret-role.bicep' = [
  for grant in grants: {
    name: 'role-${uniqueString(name, grant.process, grant.secret)}'
    params: {
      vaultName: vault.name
      secretName: grant.secret
      principalId: principals[grant.process]
      roleId: roles[grant.role]
    }
    dependsOn: [
      kept
    ]
  }
]

@description('Where the vault is reached.')
output uri string = vault.properties.vaultUri
