/** `GET /`: for a person with a browser a small page of links, for a program the same links as JSON. Without a key. */
import type { FastifyInstance } from 'fastify'

/** Path -> what is there. Relative, so that they also work behind a proxy that serves the API under a path. */
const LINKS = {
  docs: { path: 'docs', about: 'API reference, to read and to try out' },
  openapi: { path: 'openapi.json', about: 'The same as an OpenAPI 3.1 document' },
  asyncapi: { path: 'asyncapi.json', about: 'Event streams, WebSockets and webhook deliveries as AsyncAPI 3' },
  alive: { path: 'alive', about: 'Whether the process answers' },
  ready: { path: 'ready', about: 'Whether the server accepts requests' },
} as const

const LIST = Object.values(LINKS).map(({ path, about }) => `<li><a href="${path}">/${path}</a>: ${about}.</li>`)

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>agent-server</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/page.css">
</head>
<body>
<h1>agent-server</h1>
<p>This server hosts AI agents for other programs, over REST and Server-Sent Events. All requests except these need a
key: <code>Authorization: Bearer KEY</code>. The server says at its start where its key is.</p>
<ul>
${LIST.join('\n')}
</ul>
<p>The files README.md and docs/README.md of the project explain everything else.</p>
</body>
</html>
`

const DIRECTORY = {
  name: 'agent-server',
  links: Object.fromEntries(Object.entries(LINKS).map(([name, { path }]) => [name, `/${path}`])),
}

/** Registered with the other pages: it has their security headers. */
export function startPage(app: FastifyInstance): void {
  app.get('/', { config: { public: true, page: true }, schema: { hide: true } }, (request, reply) => {
    void reply.header('vary', 'Accept').header('cache-control', 'no-cache')
    if (request.headers.accept?.includes('text/html')) return reply.type('text/html; charset=utf-8').send(PAGE)
    return reply.send(DIRECTORY)
  })
}
