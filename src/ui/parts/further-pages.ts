/** The pages of a list after the first one, read when somebody scrolls to their end. */
import { useRef, useState } from 'preact/hooks'
import { attempt } from './notices.tsx'

export type RowPage<Row> = { readonly rows: readonly Row[]; readonly next?: string | undefined }

/**
 * Returns the first page with all rows that were read since, and what reads on. Another first page begins again. `read` gets the
 * page before.
 */
export function useFurtherPages<Row, Page extends RowPage<Row>>(
  first: Page | null | undefined,
  read: (before: Page) => Promise<Page>,
): { readonly page: Page | null | undefined; readonly more: () => void } {
  const [further, setFurther] = useState<{ readonly of: Page; readonly page: Page }>()
  const reading = useRef<Page>(undefined)
  const page = first && further?.of === first ? further.page : first
  const more = () => {
    if (!first || page?.next === undefined || reading.current === page) return
    reading.current = page
    attempt(async () => {
      const next = await read(page)
      setFurther({ of: first, page: { ...next, rows: [...page.rows, ...next.rows] } })
    })
  }
  return { page, more }
}
