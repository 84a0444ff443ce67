const limit = 120

/** Prints a value for an error message: short, on one line, and never throwing, whatever the value does when touched. */
export function show(value: unknown): string {
  try {
    // A kind that only repeats the value says nothing.
    const kind = value === undefined || value === null ? '' : ` (${kindOf(value)})`
    return `\`${clip(String(print(value)))}\`${kind}`
  } catch {
    return `\`unprintable\` (${typeof value})`
  }
}

/** The type as a reader would name it: an array is not an "object". */
function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : typeof value
}

function print(value: unknown): string {
  try {
    if (typeof value === 'string') return JSON.stringify(value)
    if (typeof value === 'bigint') return `${value}n`
    if (typeof value === 'function') return value.name || 'function'
    if (typeof value !== 'object' || value === null) return String(value)
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
    const className = value.constructor?.name
    if (className === 'Object' || Array.isArray(value)) return JSON.stringify(value, printable) ?? 'object'
    return className ?? 'object'
  } catch {
    return 'unprintable'
  }
}

function printable(_key: string, member: unknown): unknown {
  return typeof member === 'bigint' ? `${member}n` : member
}

function clip(text: string): string {
  return text.length <= limit ? text : `${text.slice(0, limit).replace(/[\ud800-\udbff]$/, '')}…`
}

/** The same without its values: a connection string has a password in it. */
export function outline(given: unknown): string {
  if (typeof given !== 'object' || given === null) return given === null ? 'null' : `a ${typeof given}`
  const className = Object.getPrototypeOf(given)?.constructor?.name ?? 'Object'
  return className === 'Object'
    ? `an object with ${Object.keys(given).join(', ') || 'no members'}`
    : `a ${className}`
}
