/**
 * The rule for the dashboard that `npm run check:lint` adds to those of oxlint: what agents say is never read as HTML. Names
 * are enough, because an attribute of Preact sets the property of that name.
 */

type Named = { readonly name?: unknown; readonly value?: unknown }
type Context = { report(problem: { readonly node: unknown; readonly message: string }): void }

const READ_AS_HTML: ReadonlySet<unknown> = new Set([
  'innerHTML',
  'outerHTML',
  'insertAdjacentHTML',
  'dangerouslySetInnerHTML',
  'srcdoc',
  'srcDoc',
  'setHTML',
  'setHTMLUnsafe',
  'parseHTMLUnsafe',
  'parseFromString',
  'createContextualFragment',
  'writeln',
])

const none = {
  create(context: Context): Record<string, (node: never) => void> {
    const look = (node: Named) => {
      const name = node.name ?? node.value
      if (READ_AS_HTML.has(name))
        context.report({ node, message: `${String(name)} reads a text as HTML. Make elements and text nodes.` })
    }
    return { Identifier: look, JSXIdentifier: look, Literal: look }
  },
}

export default { meta: { name: 'html' }, rules: { none } }
