import type { SchemaIssue } from './standard-schema.ts'

/** The issues in one line: `orderId: expected number; lines[0].sku: required`. */
export function describeIssues(issues: readonly SchemaIssue[]): string {
  return issues
    .slice(0, 5)
    .map((issue) => {
      const path = pathOf(issue)
      return path === '' ? issue.message : `${path}: ${issue.message}`
    })
    .join('; ')
}

function pathOf(issue: SchemaIssue): string {
  return Array.from(issue.path ?? [])
    .map((step) => (typeof step === 'object' ? step.key : step))
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index > 0 ? '.' : ''}${String(key)}`))
    .join('')
}
