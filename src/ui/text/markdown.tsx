/**
 * Markdown as elements. `marked` makes tokens only: there is no text that a browser reads as markup. HTML in it is shown as
 * the text that it is, and images are links, because the address of an image carries secrets out.
 */
import type { Token, Tokens } from 'marked'
import type { ComponentChildren } from 'preact'
import { memo } from 'preact/compat'
import { useMemo, useRef } from 'preact/hooks'
import { Code } from './code.tsx'
import { markdownTokens, tokensAfter } from './markdown-tokens.ts'
import type { LexedText } from './markdown-tokens.ts'
import { visible, visibleProse } from './visible.ts'

const SAFE = /^(?:https?|mailto):/i

export function Markdown({ text }: { readonly text: string }) {
  const before = useRef<LexedText | undefined>(undefined)
  const blocks = useMemo(() => {
    const tokens = before.current ? tokensAfter(before.current, text) : markdownTokens(text)
    before.current = tokens && { text, tokens }
    return tokens
  }, [text])
  if (!blocks) return <pre class="code">{visibleProse(text)}</pre>
  return (
    <div class="markdown">
      {blocks.map((token, index) => (
        <Block key={index} raw={token.raw} token={token} />
      ))}
    </div>
  )
}

/** Drawn again only when its text has changed: of an answer that is being written, that is the last block. */
const Block = memo(
  ({ token }: { readonly raw: string; readonly token: Token }) => <>{elementOf(token)}</>,
  (before, after) => before.raw === after.raw,
)

const all = (tokens: readonly Token[] | undefined): ComponentChildren =>
  (tokens ?? []).map((token, index) => <Inline key={index} token={token} />)

const Inline = ({ token }: { readonly token: Token }) => <>{elementOf(token)}</>

// oxlint-disable-next-line typescript/no-unsafe-type-assertion, typescript/no-unnecessary-type-parameters -- `type` says which token it is
const as = <T extends Tokens.Generic>(token: Token): T => token as unknown as T

function elementOf(token: Token): ComponentChildren {
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'heading':
      return <Heading depth={as<Tokens.Heading>(token).depth}>{all(as<Tokens.Heading>(token).tokens)}</Heading>
    case 'paragraph':
      return <p>{all(as<Tokens.Paragraph>(token).tokens)}</p>
    case 'code':
      return <Code text={as<Tokens.Code>(token).text} language={languageOf(as<Tokens.Code>(token))} />
    case 'blockquote':
      return <blockquote>{all(as<Tokens.Blockquote>(token).tokens)}</blockquote>
    case 'list':
      return <List list={as<Tokens.List>(token)} />
    case 'table':
      return <Table table={as<Tokens.Table>(token)} />
    case 'hr':
      return <hr />
    case 'strong':
      return <strong>{all(as<Tokens.Strong>(token).tokens)}</strong>
    case 'em':
      return <em>{all(as<Tokens.Em>(token).tokens)}</em>
    case 'del':
      return <del>{all(as<Tokens.Del>(token).tokens)}</del>
    case 'codespan':
      return <code>{visible(as<Tokens.Codespan>(token).text)}</code>
    case 'br':
      return <br />
    case 'link':
      return <OutsideLink href={as<Tokens.Link>(token).href}>{all(as<Tokens.Link>(token).tokens)}</OutsideLink>
    case 'image':
      return (
        <OutsideLink href={as<Tokens.Image>(token).href}>
          {visibleProse(as<Tokens.Image>(token).text) || 'image'}
        </OutsideLink>
      )
    case 'escape':
      return visibleProse(as<Tokens.Escape>(token).text)
    case 'text':
      return as<Tokens.Text>(token).tokens
        ? all(as<Tokens.Text>(token).tokens)
        : visibleProse(as<Tokens.Text>(token).text)
    default:
      return visibleProse(token.raw)
  }
}

/** The first word after the fence. */
const languageOf = ({ lang }: Tokens.Code): string | undefined => /^[\w+#.-]+/.exec(lang ?? '')?.[0]

/** The headings of an answer are below those of the page. */
function Heading({ depth, children }: { readonly depth: number; readonly children: ComponentChildren }) {
  if (depth <= 1) return <h3>{children}</h3>
  return depth === 2 ? <h4>{children}</h4> : <h5>{children}</h5>
}

function List({ list }: { readonly list: Tokens.List }) {
  const items = list.items.map((item, index) => (
    <li key={index}>
      {item.task && <input type="checkbox" checked={item.checked ?? false} disabled aria-label="done" />}
      {all(item.tokens)}
    </li>
  ))
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>
}

function Table({ table }: { readonly table: Tokens.Table }) {
  return (
    <div class="scroll-x" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {table.header.map((cell, index) => (
              <th key={index}>{all(cell.tokens)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>{all(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/**
 * Shows the target of a link always: what a link says and where it leads may differ. The target is the one that the browser
 * makes of the text. One with a user is no link: what is before the `@` looks like a host.
 */
export function OutsideLink({ href, children }: { readonly href: string; readonly children: ComponentChildren }) {
  const url = SAFE.test(href) ? URL.parse(href) : null
  if (!url || url.username !== '' || url.password !== '')
    return (
      <>
        {children} ({visible(href)})
      </>
    )
  return (
    <a href={url.href} target="_blank" rel="noopener noreferrer" title={visible(url.href)}>
      {children}
      <span class="target"> ({shortTarget(url)})</span>
    </a>
  )
}

/** The host is always whole. */
function shortTarget({ href, origin }: URL): string {
  const target = visible(href)
  const length = Math.max(80, origin.length + 1)
  return target.length > length ? `${target.slice(0, length - 1)}…` : target
}
