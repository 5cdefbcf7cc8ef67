// PostgreSQL with PostGIS. Nobody has a password: every login shows a token of Entra ID.

@description('The name of the server.')
param name string

@description('Where the server is.')
param location string

@description('The name of the database.')
param databaseName string

@description('The subnet in which the server is reached.')
param subnet string

@description('The private zone that has its name.')
param zone string

@description('The size of the server.')
param size string

@description('Its disk, in GiB.')
param diskGiB int

@description('The identity that makes the schema, its roles and their logins.')
param administrator {
  name: string
  principalId: string
}

resource server 'Microsoft.DBforPostgreSQL/flexibleServers@2024-08-01' = {
  name: name
  location: location
  sku: {
    name: size
    tier: startsWith(size, 'Standard_B') ? 'Burstable' : startsWith(size, 'Standard_E') ? 'MemoryOptimized' : 'GeneralPurpose'
  }
  properties: {
    version: '16'
    storage: {
      storageSizeGB: diskGiB
      autoGrow: 'Enabled'
    }
    authConfig: {
      activeDirectoryAuth: 'Enabled'
      passwordAuth: 'Disabled'
      tenantId: subscription().tenantId
    }
    backup: {
      backupRetentionDays: 14
      geoRedundantBackup: 'Disabled'
    }
    network: {
      delegatedSubnetResourceId: subnet
      privateDnsZoneArmResourceId: zone
    }
  }
}

// One change at a time: the server refuses a second one while it is busy with the first.
resource extensions 'Microsoft.DBforPostgreSQL/flexibleServers/configurations@2024-08-01' = {
  parent: server
  name: 'azure.extensions'
  properties: {
    source: 'user-override'
    value: 'BTREE_GIST,POSTGIS,UNACCENT'
  }
}

resource database 'Microsoft.DBforPostgreSQL/flexibleServers/databases@2024-08-01' = {
  parent: server
  name: databaseName
  properties: {
    charset: 'UTF8'
    collation: 'en_US.utf8'
  }
  dependsOn: [
    extensions
  ]
}

resource owner 'Microsoft.DBforPostgreSQL/flexibleServers/administrators@2024-08-01' = {
  parent: server
  name: administrator.principalId
  properties: {
    principalName: administrator.name
    principalType: 'ServicePrincipal'
    tenantId: subscription().tenantId
  }
  dependsOn: [
    database
  ]
}

@description('Where the server is reached.')
output host string = server.properties.fullyQualifiedDomainName
