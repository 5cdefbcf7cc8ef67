import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

import { App } from './app/App'
import { reloadWhenPartsAreGone } from './app/reload'
import { applyTheme, keptTheme } from './app/theme'
import './ui/theme.css'
import './ui/ui.css'
import './app/app.css'

const root = document.getElementById('root')
if (root === null) throw new Error('index.html has no element #root.')
reloadWhenPartsAreGone()
applyTheme(keptTheme())
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
