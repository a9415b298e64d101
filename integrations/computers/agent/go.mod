module atrium-agent

go 1.25.0
