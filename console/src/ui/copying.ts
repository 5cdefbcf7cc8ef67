/** Copies a text, and tells whether it could. `button` is what was pressed for it. */
export async function copy(text: string, button: HTMLElement): Promise<boolean> {
  const clipboard = navigator.clipboard as Clipboard | undefined // without https there is none
  try {
    if (!clipboard) return copySelected(text, button)
    await clipboard.writeText(text)
    return true
  } catch {
    return copySelected(text, button)
  }
}

/** The way of old: what is selected is copied. It stands beside the button: outside a dialog nothing is selected. */
function copySelected(text: string, button: HTMLElement): boolean {
  const field = document.createElement('textarea')
  field.className = 'copied-text'
  field.readOnly = true
  field.value = text
  button.after(field)
  field.select()
  try {
    return document.execCommand('copy')
  } finally {
    field.remove()
    button.focus()
  }
}
