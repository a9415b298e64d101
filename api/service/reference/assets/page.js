// Starts the reference page. A file of its own, because the page's policy allows no script inside the page.
window.SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  // No badge from another server.
  validatorUrl: null,
  // "Try it out" calls the server that served the page, wherever it runs.
  requestInterceptor: (request) => {
    const url = new URL(request.url, window.location.href);
    if (url.origin === 'http://localhost:8080') request.url = `${window.location.origin}${url.pathname}${url.search}`;
    return request;
  },
});
