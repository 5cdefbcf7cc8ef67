// The gateway as a Functions app, instead of a container: it begins when it is asked, and streams nothing.

import { roles } from 'roles.bicep'

@description('The name of the app.')
param name string

@description('Where it runs.')
param location string

@description('The name of the account in which the host keeps its own things, and the package of the app.')
param hostAccountName string

@description('The subnet by which it reaches the database.')
param subnet string

@description('Who the app is.')
param identity {
  id: string
  clientId: string
  name: string
}

@description('To whom roles are given.')
param principalId string

@description('Its settings.')
param variables {
  name: string
  value: string
}[]

@description('Its settings that are secrets of the vault.')
param secrets {
  variable: string
  secret: string
}[]

@description('The vault.')
param vaultUri string

@description('How many of it run at most.')
param atMost int = 40

var own = [
  { name: 'AZURE_CLIENT_ID', value: identity.clientId }
  { name: 'AZURE_TOKEN_CREDENTIALS', value: 'ManagedIdentityCredential' }
  { name: 'AzureWebJobsStorage__accountName', value: host.name }
  { name: 'AzureWebJobsStorage__clientId', value: identity.clientId }
  { name: 'AzureWebJobsStorage__credential', value: 'managedidentity' }
  { name: 'GRATICULE_DATABASE_POOL_SIZE', value: '4' }
  { name: 'GRATICULE_LOG_FORMAT', value: 'json' }
]
var fromVault = map(secrets, each => {
  name: each.variable
  value: '@Microsoft.KeyVault(SecretUri=${vaultUri}secrets/${each.secret})'
})

resource host 'Microsoft.Storage/storageAccounts@2023-05-01' = {
  name: hostAccountName
  location: location
  kind: 'StorageV2'
  sku: {
    name: 'Standard_LRS'
  }
  properties: {
    allowBlobPublicAccess: false
    allowSharedKeyAccess: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
  }

  resource blobs 'blobServices' = {
    name: 'default'

    resource packages 'containers' = {
      name: 'packages'
      properties: {
        publicAccess: 'None'
      }
    }
  }
}

resource granted 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(host.id, principalId, 'Storage Blob Data Owner')
  scope: host
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles['Storage Blob Data Owner'])
  }
}

resource plan 'Microsoft.Web/serverfarms@2024-04-01' = {
  name: '${name}-plan'
  location: location
  kind: 'functionapp'
  sku: {
    name: 'FC1'
    tier: 'FlexConsumption'
  }
  properties: {
    reserved: true
  }
}

resource app 'Microsoft.Web/sites@2024-04-01' = {
  name: name
  location: location
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identity.id}': {}
    }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    keyVaultReferenceIdentity: identity.id
    virtualNetworkSubnetId: subnet
    functionAppConfig: {
      runtime: {
        name: 'python'
        version: '3.11'
      }
      scaleAndConcurrency: {
        instanceMemoryMB: 2048
        maximumInstanceCount: atMost
      }
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${host.properties.primaryEndpoints.blob}${host::blobs::packages.name}'
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: identity.id
          }
        }
      }
    }
    siteConfig: {
      minTlsVersion: '1.2'
      ftpsState: 'Disabled'
      appSettings: concat(own, variables, fromVault)
    }
  }
  dependsOn: [
    granted
  ]
}

@description('The host under which the app is reached.')
output host string = app.properties.defaultHostName
