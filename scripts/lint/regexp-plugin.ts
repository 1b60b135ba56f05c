/** The rules for regular expressions that `npm run check:lint` adds to those of oxlint. */
import { regexpFaults } from './regexp-faults.ts'

type Node = { readonly regex?: { readonly pattern: string; readonly flags: string } | undefined }
type Call = { readonly callee: { readonly name?: string } }
type Context = { report(problem: { readonly node: unknown; readonly message: string }): void }

/** `disable` comments name the bound of the text, or why the expression is right. */
const rule = (kind: 'stack' | 'time'): { create(context: Context): Record<string, (node: never) => void> } => ({
  create: (context) => ({
    Literal(node: Node) {
      const { pattern, flags } = node.regex ?? {}
      if (pattern === undefined || flags === undefined) return
      for (const { message } of regexpFaults(pattern, flags).filter((fault) => fault.kind === kind))
        context.report({ node, message })
    },
  }),
})

const built = {
  create: (context: Context): Record<string, (node: Call) => void> => {
    const report = (node: Call): void => {
      if (node.callee.name === 'RegExp')
        context.report({ node, message: 'This expression is not analyzed. Write a literal, or say why it is quick.' })
    }
    return { NewExpression: report, CallExpression: report }
  },
}

export default { meta: { name: 'regexp' }, rules: { stack: rule('stack'), time: rule('time'), built } }
